# Print variances over groups as R computes them, one "name value" per line. Called by
# groups_reference.py with a file of the columns gap, bin, group, and weight. Needs the packages
# clubSandwich and metafor.
suppressMessages({library(clubSandwich); library(metafor)})
d <- read.csv(commandArgs(trailingOnly = TRUE)[1])
show <- function(name, value) cat(name, format(unname(value), digits = 17), "\n")

# Rows of equal weights are the rows of the regression. Rows of other weights are first averaged by
# group, because CR2 of single rows then depends on the root of a matrix that is chosen.
tested <- function(formula, rows) {
  fit <- lm(formula, data = rows, weights = weight)
  v <- vcovCR(fit, cluster = rows$group, type = "CR2", target = 1 / rows$weight)
  coef_test(fit, v, test = "Satterthwaite")
}
means <- function(rows, by) {
  if (all(rows$weight == 1)) return(rows)
  rows$sum <- rows$gap * rows$weight
  out <- aggregate(rows[c("sum", "weight")], rows[by], sum)
  out$gap <- out$sum / out$weight
  out
}

# The gap of each bin. The working model has independent rows of variance 1/weight.
found <- tested(gap ~ 0 + factor(bin), means(d, c("group", "bin")))
for (b in seq_along(found$beta)) {
  show(paste0("error_", b - 1), found$SE[b])
  show(paste0("degrees_", b - 1), found$df_Satt[b])
}

# The part of each bin in SMECE: the mean over all rows of the gap, 0 in other bins.
for (b in sort(unique(d$bin))) {
  found <- tested(gap ~ 1, means(transform(d, gap = gap * (bin == b)), "group"))
  show(paste0("part_error_", b), found$SE)
  show("part_degrees", found$df_Satt)
}

# A new group: DerSimonian and Laird, interval of Higgins, Thompson, and Spiegelhalter. predict()
# multiplies by a normal quantile, which is replaced by that of Student's distribution.
e <- read.csv(commandArgs(trailingOnly = TRUE)[2])
fit <- rma(yi = e$estimate, sei = e$error, method = "DL")
p <- predict(fit)
half <- (p$pi.ub - p$pi.lb) / 2 / qnorm(0.975) * qt(0.975, nrow(e) - 2)
show("tau", sqrt(fit$tau2))
show("mean", p$pred)
show("mean_error", p$se)
show("low", p$pred - half)
show("high", p$pred + half)
