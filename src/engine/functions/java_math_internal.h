#pragma once

/// \file
/// Elementary functions to the last digit of Java's StrictMath, which Spark computes with. Its algorithms are those of
/// fdlibm: fixed reductions and polynomials, whose rounding the C library of the machine does not share.
/// Everything here is a plain function of its arguments: NaN in, NaN out; no error, any thread.

namespace fleuve::engine::java_math {

double Exp(double x);
double Log(double x);
double Log10(double x);
double Pow(double x, double y);
double Cbrt(double x);
double Hypot(double x, double y);
double Asin(double x);
double Acos(double x);
double Atan(double x);
double Atan2(double y, double x);
double Sinh(double x);
double Cosh(double x);
double Tanh(double x);

}  // namespace fleuve::engine::java_math
