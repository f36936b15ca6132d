# Print the calibration summary of outcomes as R computes it, one "name value" per line.
# Called by rms_reference.py with a file of the columns p and y. Needs the package rms.
suppressMessages(library(rms))
d <- read.csv(commandArgs(trailingOnly = TRUE)[1])
show <- function(name, value) cat(name, format(unname(value), digits = 17), "\n")

found <- val.prob(d$p, d$y, pl = FALSE)
# lrm of rms rounds predictions for C; somers2 of Hmisc, on which rms is built, does not.
show("auroc", Hmisc::somers2(d$p, d$y)["C"])
show("auroc_of_lrm", found["C (ROC)"])
show("brier", found["Brier"])
show("intercept", found["Intercept"])
show("slope", found["Slope"])
for (name in c("Emax", "E90", "Eavg")) show(paste0("lowess_", tolower(name)), found[name])

# CalibrationCurves (val.prob.ci.2) takes both intercepts, the slope, and their limits from glm.
logit <- qlogis(d$p)
strict <- glm.control(epsilon = 1e-14, maxit = 100)
large <- glm(y ~ 1, offset = logit, family = binomial, data = d, control = strict)
both <- glm(y ~ logit, family = binomial, data = d, control = strict)
show("calibration_in_the_large", coef(large)[1])
show("glm_intercept", coef(both)[1])
show("glm_slope", coef(both)[2])
show("error_in_the_large", sqrt(vcov(large)[1, 1]))
show("error_slope", sqrt(vcov(both)[2, 2]))

# ICI, E50, E90, and Emax of Austin and Steyerberg (2019).
for (surface in c("direct", "interpolate")) {
  fit <- loess(y ~ p, data = d, control = loess.control(surface = surface))
  distance <- abs(d$p - fitted(fit))
  show(paste0(surface, "_ici"), mean(distance))
  show(paste0(surface, "_e50"), quantile(distance, 0.5))
  show(paste0(surface, "_e90"), quantile(distance, 0.9))
  show(paste0(surface, "_emax"), max(distance))
}
