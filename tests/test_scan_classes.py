"""Many classes and labels known as intervals, from every source into one set."""

from __future__ import annotations

from typing import Any

import pytest

import softcal as sc
from softcal.sources.class_columns import Present, class_columns, class_roles
from softcal.sources.columns import ClassRoles, Roles

PRESENT = ["y_cat", "y_dog", "p_dog_lr", "p_cat_lr", "p_cat", "q_cat", "q_bat", "name", "list"]


def _roles(label: Any, *models: Any, **options: Any) -> ClassRoles:
    present = Present(PRESENT, lambda name: 2 if name == "list" else None)
    specs = {f"m{k}": spec for k, spec in enumerate(models)}
    return class_roles(label, specs, present, **options)


def test_columns_of_classes_are_named_by_a_list_a_pattern_or_a_prefix() -> None:
    assert class_columns("y_", PRESENT).classes == ("cat", "dog")
    roles = _roles("y_", "p_*_lr", "p_cat_lr, p_dog_lr", ["p_cat_lr", "p_dog_lr"][::-1], "list")
    assert roles == ClassRoles(
        ("cat", "dog"),
        "shares",
        ("y_cat", "y_dog"),
        (("p_cat_lr", "p_dog_lr"), ("p_cat_lr", "p_dog_lr"), ("p_dog_lr", "p_cat_lr"), ("list",)),
    )
    for spec, said in (
        ("y_cat", "it stands for the one column of that name"),
        ("z_", "it stands for none"),
        ("y_cat,y_cat", "two or more different columns"),
    ):
        with pytest.raises(sc.InputError, match=said):
            class_columns(spec, PRESENT)
    with pytest.raises(sc.InputError, match="as many columns as there are classes of the label, 2"):
        _roles("y_", "p_cat,p_cat_lr,p_dog_lr")
    with pytest.raises(sc.InputError, match="missing dog; beside them bat"):
        _roles("y_", "q_")
    with pytest.raises(sc.InputError, match="'name' must hold a list of numbers per row"):
        _roles("y_", "name")


def test_classes_are_named_by_the_star_the_columns_or_numbers() -> None:
    assert _roles("name", "p_*_lr").names == ("dog", "cat")
    assert _roles("name", ["p_dog_lr", "p_cat_lr"]).names == ("p_dog_lr", "p_cat_lr")
    assert _roles("name", "list") == ClassRoles(("0", "1"), "names", ("name",), (("list",),))
    assert _roles(["list"], "p_*_lr", counts=True).names == ("dog", "cat")
    assert _roles("list", ["list"]).names == ("0", "1")


def test_given_names_of_classes_reorder_patterns_that_have_them_and_else_rename() -> None:
    same = _roles("y_", "p_*_lr", "list", classes=["dog", "cat"])
    assert same.names == ("dog", "cat")
    assert same.label == ("y_dog", "y_cat")
    assert same.models == (("p_dog_lr", "p_cat_lr"), ("list",))
    new = _roles("name", "p_*_lr", classes=[7, 9])
    assert new.names == ("7", "9")
    assert new.models == (("p_dog_lr", "p_cat_lr"),)
    assert _roles("name", "p_*_lr", classes=["hound", "cat"]).names == ("hound", "cat")
    with pytest.raises(sc.InputError, match="'cat' is the name of another column"):
        _roles("name", "p_*_lr", classes=["cat", "hound"])
    for bad in ("ab", ["a"], ["a", "a"]):
        with pytest.raises(sc.InputError, match="classes must be 2 different names"):
            _roles("name", "p_*_lr", classes=bad)


def test_a_class_called_top_is_refused_with_the_remedy() -> None:
    with pytest.raises(sc.InputError, match=r"no class may be called 'top'.*classes= \(--classes"):
        _roles("y_", "p_*_lr", classes=["top", "cat"])
    with pytest.raises(sc.InputError, match="and that class in the column of labels"):
        _roles("name", "p_*_lr", classes=["top", "cat"])


def test_counts_of_votes_need_a_column_per_class() -> None:
    assert _roles("y_", "p_*_lr", counts=True).kind == "counts"
    with pytest.raises(sc.InputError, match=r"'name' holds one value per row.*from_long"):
        _roles("name", "p_*_lr", counts=True)


ROWS = {"y_a": [0.5], "y_b": [0.5], "p_a": [0.25], "p_b": [0.75], "t": ["x"]}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"y_prob": "p_a"}, "pass one of y_true, vote_counts .*: got 0 of them"),
        ({"y_true": "y_a", "vote_counts": "y_*", "y_prob": {"m": "p_*"}}, "got 2 of them"),
        ({"vote_counts": "y_*", "y_prob": "p_a"}, "vote_counts must go with predictions of many"),
        ({"y_true": ["y_a", "y_b"], "y_prob": "p_a"}, "several columns in y_true must go with"),
        ({"y_true": "y_a", "y_prob": "p_a", "classes": ["a"]}, "classes must go with"),
        ({"label_bounds": ("y_a", "y_b"), "y_prob": {"m": "p_*"}}, "must go with one prediction"),
        ({"label_bounds": "y_a", "y_prob": "p_a"}, "label_bounds must be two columns"),
        ({"label_bounds": ("y_a", "y_a"), "y_prob": "p_a"}, "both are 'y_a'"),
        ({"label_bounds": ("y_a", "p_a"), "y_prob": "p_a"}, "both are 'p_a'"),
        ({"label_bounds": ("y_a", "y_b"), "y_prob": "p_a", "n_votes": 3}, "leave n_votes out"),
        ({"label_bounds": ("y_a", "y_b"), "y_prob": "p_a", "groups": "t"}, "leave groups out"),
        ({"y_true": "y_*", "y_prob": {}}, "y_prob must name at least one column"),
        ({"y_true": "y_*", "y_prob": {"m": "y_*"}}, "different columns: both are 'y_a'"),
        ({"y_true": "y_*", "y_prob": {"m": "p_*", "k": "p_"}}, "'m' and 'k' have the same"),
        ({"vote_counts": "y_*", "y_prob": {"m": "p_*"}, "n_votes": 3}, "leave n_votes out"),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(options: dict[str, Any], said: str) -> None:
    pd = pytest.importorskip("pandas")
    with pytest.raises(sc.InputError, match=said):
        sc.scan(pd.DataFrame(ROWS), **options)


@pytest.mark.parametrize("options", [{"y_true": "y_*", "y_prob": {3: "p_*"}}])
def test_names_other_than_text_are_refused(options: dict[str, Any]) -> None:
    pd = pytest.importorskip("pandas")
    with pytest.raises(sc.InputTypeError, match="must be the name of a column, which is text"):
        sc.scan(pd.DataFrame(ROWS), **options)


def test_targets_are_top_and_the_classes_or_the_ends() -> None:
    found = ClassRoles(("a", "b"), "shares", ("y_a", "y_b"), (("p_a", "p_b"),))
    assert Roles("y_*", ("m",), classes=found).targets == ("top", "a", "b")
    assert Roles("l to h", ("m",), bounds=("l", "h")).targets == ("low", "high")
    assert Roles("y", ("m",)).targets == ("label",)
