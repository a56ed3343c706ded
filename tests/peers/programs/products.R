# SPDX-License-Identifier: Apache-2.0
# Prints each result as "name rows columns" and its elements, one a line.
set.seed(42)
show <- function(name, x) {
  if (is.complex(x)) x <- cbind(Re(x), Im(x))
  x <- as.matrix(x)
  cat(name, dim(x), "\n")
  cat(sprintf("%.17g\n", x), sep = "")
}
a <- matrix(runif(60 * 40), 60)
b <- matrix(runif(40 * 50), 40)
c <- matrix(runif(60 * 60), 60) + 60 * diag(60)
z <- a + 1i * matrix(runif(60 * 40), 60)
show("product", a %*% b)
show("crossprod", crossprod(a))
show("crossprod_of_two", crossprod(a, c))
show("tcrossprod", tcrossprod(a))
show("tcrossprod_of_two", tcrossprod(a, t(b)))
show("complex", z %*% b)
show("solve", solve(c, a))
show("inverse", solve(c))
r <- chol(crossprod(a) + diag(40))
show("chol", r)
show("backsolve", backsolve(r, b))
show("forwardsolve", forwardsolve(t(r), b))
show("chol_inverse", chol2inv(r))
show("least_squares", lm.fit(a, c)$coefficients)

# C49: the same components every time; their signs are free.
x <- matrix(rnorm(1e5), nrow = 200)
for (i in 1:5) {
  p <- prcomp(x, scale. = TRUE)$x[1:5, 1:5]
  largest <- p[cbind(max.col(t(abs(p)), "first"), 1:5)]
  show(paste0("components", i), sweep(p, 2, sign(largest), "*"))
}
