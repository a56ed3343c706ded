% SPDX-License-Identifier: Apache-2.0
% Prints each result as "name rows columns" and its elements, one a line.
rand ("twister", 7);
function show (name, x)
  if (iscomplex (x))
    x = [real(x), imag(x)];
  end
  x = double (x);
  printf ("%s %d %d\n", name, rows (x), columns (x));
  printf ("%.17g\n", x);
end
a = rand (60, 40);
b = rand (40, 50);
c = rand (60, 60) + 60 * eye (60);
z = a + 1i * rand (60, 40);
show ("product", a * b);
show ("single", single (a) * single (b));
show ("complex_and_real", z * b);
show ("complex", z * (b * (1 - 2i)));
show ("gram", a' * a);
show ("gram_complex", z' * z);
show ("outer", a * a');
show ("solve", c \ a);
r = chol (a' * a + eye (40));
show ("chol", r);
show ("triangular", r \ b);
show ("triangular_transposed", r' \ b);
show ("right", b' / r);
show ("inverse", inv (c));
show ("determinant", log (det (c)));
show ("least_squares", a \ rand (60, 3));
show ("singular_values", svd (a));
show ("exponential", expm (c / 60));
