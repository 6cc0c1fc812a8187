/* Macros that numerical programs define before they include umem. What the standard library does
 * not survive is left out: min, max, abs, swap, real, size. */
#pragma once

#define A(i, j) a[(i) + (j)*lda]
#define B 2
#define C 299792458.0
#define D 3
#define E 2.718281828459045
#define F(x) ((x) * (x))
#define G 6.674e-11
#define H 0.01
#define I 1
#define J 7
#define K 8
#define L 1.0
#define M 200
#define N 100
#define O 0
#define P 4
#define Q 5
#define R 8.314
#define S 9
#define T 1000
#define U(i, j) u[i][j]
#define V 10
#define W 11
#define X 12
#define Y 13
#define Z 14

#define AA 1
#define BS 32
#define DIM 3
#define DT 1e-3
#define DX 0.1
#define EPS 1e-9
#define EPSILON 1e-9
#define ERROR(x) fail(x)
#define FALSE 0
#define ID 1
#define IDX(i, j) ((i)*N + (j))
#define IN
#define INDEX(i, j) ((i)*N + (j))
#define INF 1e300
#define LEN 100
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define NDIM 3
#define NN 100
#define NX 100
#define NY 100
#define NZ 100
#define OK 0
#define OUT
#define PI 3.141592653589793
#define RANK 2
#define SIZE 1000
#define SQR(x) ((x) * (x))
#define TRUE 1
#define TYPE double
#define ZERO 0.0

#define Complex _Complex
#define Device __device__
#define Global __global__
#define HD __host__ __device__
#define Host __host__
#define Int int
#define Kernel __global__
#define Real double
#define Shared __shared__

#define call(x) ((x), report(__LINE__))
#define check(x) ((x) ? (void)0 : abort())
#define cube(x) ((x) * (x) * (x))
#define die(x) exit(x)
#define eps 1e-9
#define f(x) ((x) * (x))
#define forall(i, n) for (int i = 0; i < n; i++)
#define g(x) (2 * (x))
#define idx(i, j) ((i)*N + (j))
#define nx 100
#define ny 100
#define nz 100
#define rep(i, n) for (int i = 0; i < n; i++)
#define sqr(x) ((x) * (x))
#define square(x) ((x) * (x))
#define u(i, j) u[(i)*N + (j)]
#define x(i) x[(i)-1]
