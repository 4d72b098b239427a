# R's answers for data.csv, in r.csv. How to run it: see make.py.
#
# Where values are tied, wilcox.test falls back to the normal approximation. There p comes from coin's exact permutation
# distribution, and the interval is made as wilcox.test makes it without ties: order statistics at qsignrank or qwilcox.

suppressMessages(library(coin))
alpha <- 0.05
data <- read.csv("data.csv", colClasses = c("character", "character", "numeric"))
answers <- data.frame(set = character(), quantity = character(), value = character())
add <- function(set, ...) {
  values <- list(...)
  for (quantity in names(values)) {
    value <- values[[quantity]]
    text <- if (is.na(value)) "NA" else sprintf("%.17g", value)
    answers[nrow(answers) + 1, ] <<- c(set, quantity, text)
  }
}
untied <- function(v) !any(duplicated(v))

# Twice the smaller tail of the exact permutation distribution.
mann_whitney <- function(a, b) {
  frame <- data.frame(value = c(a, b), arm = factor(rep(c("a", "b"), c(length(a), length(b)))))
  tail <- function(side) pvalue(wilcox_test(value ~ arm, frame, distribution = "exact", alternative = side))
  min(1, 2 * min(tail("less"), tail("greater")))
}

# Ends at the order statistics qu and M + 1 - qu, as in the source of wilcox.test; NA where the level cannot be kept.
ends <- function(sorted, qu, outside) {
  if (outside(max(qu, 1) - 1) * 2 > alpha) return(c(NA, NA))
  sorted[c(qu, length(sorted) + 1 - qu)]
}

for (set in unique(data$set)) {
  a <- data$value[data$set == set & data$arm == "a"]
  b <- data$value[data$set == set & data$arm == "b"]
  if (length(unique(c(a, b))) > 1) add(set, mann_whitney_p = mann_whitney(a, b))
  if (untied(c(a, b))) add(set, mann_whitney_p = wilcox.test(a, b, exact = TRUE)$p.value)
  shifts <- sort(outer(b, a, "-"))
  n <- length(a)
  m <- length(b)
  interval <- ends(shifts, qwilcox(alpha / 2, m, n), function(q) pwilcox(q, m, n))
  add(set, shift = median(shifts), shift_low = interval[1], shift_high = interval[2])
  if (untied(c(a, b)) && !is.na(interval[1])) {
    test <- wilcox.test(b, a, conf.int = TRUE, exact = TRUE)
    add(set, shift = test$estimate, shift_low = test$conf.int[1], shift_high = test$conf.int[2])
  }
  if (length(unique(c(a, b))) > 1) {
    test <- t.test(b, a)
    add(set, welch_t = test$statistic, welch_df = test$parameter, welch_p = test$p.value,
        welch_low = test$conf.int[1], welch_high = test$conf.int[2])
  }
  if (!startsWith(set, "paired")) next

  d <- b - a
  sums <- outer(d, d, "+")
  walsh <- sort(sums[!lower.tri(sums)]) / 2
  interval <- ends(walsh, qsignrank(alpha / 2, n), function(q) psignrank(q, n))
  add(set, walsh = median(walsh), walsh_low = interval[1], walsh_high = interval[2])
  if (untied(abs(d)) && !(0 %in% d)) {
    test <- wilcox.test(d, conf.int = !is.na(interval[1]), exact = TRUE)
    add(set, signed_rank_p = test$p.value)
    if (!is.na(interval[1])) {
      add(set, walsh = test$estimate, walsh_low = test$conf.int[1], walsh_high = test$conf.int[2])
    }
  } else {
    test <- wilcoxsign_test(b ~ a, distribution = "exact", zero.method = "Pratt")
    add(set, signed_rank_p_given_ties = pvalue(test))
  }
  if (length(unique(d)) > 1) {
    test <- t.test(b, a, paired = TRUE)
    add(set, paired_t = test$statistic, paired_p = test$p.value, paired_low = test$conf.int[1],
        paired_high = test$conf.int[2])
    later <- outer(d, d, function(i, j) sign(j - i))
    add(set, mann_kendall_s = sum(later[upper.tri(later)]))
    test <- if (untied(d)) cor.test(seq_along(d), d, method = "kendall", exact = TRUE)
            else cor.test(seq_along(d), d, method = "kendall", exact = FALSE, continuity = TRUE)
    add(set, mann_kendall_p = test$p.value)
  }
}

for (case in c("40 3 0.05", "40 5 0.05", "10 0 0.05", "200 17 0.05", "30 21 0.5")) {
  of <- as.numeric(strsplit(case, " ")[[1]])
  text <- sprintf("%.17g", binom.test(of[2], of[1], of[3], alternative = "greater")$p.value)
  answers[nrow(answers) + 1, ] <- c("binomial", case, text)
}
# One family: the Mann-Whitney p of each set.
p <- answers[answers$quantity == "mann_whitney_p", ]
p <- p[!duplicated(p$set), ]
for (method in c("holm", "BH")) {
  adjusted <- p.adjust(as.numeric(p$value), method)
  for (i in seq_along(adjusted)) {
    answers[nrow(answers) + 1, ] <- c(p$set[i], paste0(tolower(method), "_p"), sprintf("%.17g", adjusted[i]))
  }
}
write.csv(answers, "r.csv", row.names = FALSE, quote = FALSE)
