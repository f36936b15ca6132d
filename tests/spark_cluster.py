"""Run a standalone Spark cluster on this machine: a master and two workers as processes."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKERS = 2


class Cluster:
    """The processes of the cluster, and a session on it."""

    def __init__(self, folder: Path, memory: str) -> None:
        import pyspark

        if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
            message = "Spark needs Java: `make system` installs it (apt: default-jre-headless)."
            raise RuntimeError(message)
        self._folder = folder
        self._memory = memory
        self._home = Path(pyspark.__file__).parent
        self._env = os.environ | {
            "SPARK_HOME": str(self._home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "PYSPARK_PYTHON": sys.executable,
        }
        self.url = f"spark://127.0.0.1:{_free_port()}"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.workers: list[subprocess.Popen[bytes]] = []
        self.session: Any = None

    def start(self) -> None:
        """Start the processes, then a session that has an executor on each worker."""
        self._start("master.Master", "--port", self.url.rpartition(":")[2])
        self.workers = [
            self._start("worker.Worker", "--cores", "1", "--memory", self._memory,
                        "--work-dir", str(self._folder / f"worker{k}"), self.url)
            for k in range(WORKERS)
        ]  # fmt: skip
        self.session = self._session()
        wait_until(lambda: self.executors() == WORKERS)

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [str(self._home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}",
                   "--host", "127.0.0.1", "--webui-port", "0", *arguments]  # fmt: skip
        with (self._folder / f"{name}{len(self.processes)}.log").open("wb") as log:
            process = subprocess.Popen(  # noqa: S603
                command, stdout=log, stderr=log, env=self._env, start_new_session=True
            )
        self.processes.append(process)
        return process

    def _session(self) -> Any:
        from pyspark.sql import SparkSession

        os.environ |= {key: self._env[key] for key in ("SPARK_LOCAL_IP", "PYSPARK_PYTHON")}
        settings = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "640m",
            "spark.executor.memory": self._memory,
            "spark.executor.cores": "1",
            "spark.cores.max": str(WORKERS),
            "spark.sql.shuffle.partitions": "4",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            # A test kills a worker, so detect it soon.
            "spark.network.timeout": "30s",
            "spark.network.timeoutInterval": "5s",
            "spark.executor.heartbeatInterval": "2s",
            "spark.sql.warehouse.dir": str(self._folder / "warehouse"),
            "spark.log.level": "ERROR",
        }
        builder = SparkSession.builder.master(self.url).appName("softcal tests")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.range(1).count()  # returns once a worker provides an executor
        return session

    def executors(self) -> int:
        """Return the number of executors that the driver sees, without itself."""
        state = self.session.sparkContext._jsc.sc().getExecutorMemoryStatus()
        return int(state.size()) - 1

    def kill_a_worker(self) -> None:
        """Kill a worker and its executor, as if a machine lost power."""
        os.killpg(self.workers.pop().pid, signal.SIGKILL)

    def stop(self) -> None:
        """Stop the session, then every process of the cluster."""
        if self.session is not None:
            self.session.stop()
        for process in self.processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def cluster(folder: Path, memory: str = "512m") -> Iterator[Cluster]:
    """Start a cluster with two workers, and stop it at the end."""
    made = Cluster(folder, memory)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def wait_until(condition: Any, seconds: float = 60) -> None:
    """Wait until a condition is true; fail if it stays false."""
    limit = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > limit:
            message = "the cluster did not come to the expected state"
            raise TimeoutError(message)
        time.sleep(0.02)
