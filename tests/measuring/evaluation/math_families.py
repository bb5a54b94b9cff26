"""Pairs of answers that differ and pairs that are equal, by the family of what graders get wrong.

A line is a pair, to be judged both ways round.
"""

# ruff: noqa: RUF001

from __future__ import annotations

DIFFER = {
    "case of letters": r"""
R/r ¦ r/R
\frac{R}{r} ¦ \frac{r}{R}
\gamma ¦ \Gamma
\delta ¦ \Delta
2\pi ¦ 2\Pi
\omega t ¦ \Omega t
\sigma^2 ¦ \Sigma^2
X+y ¦ x+Y
A\cup b ¦ a\cup B
mV^2 ¦ Mv^2
M/m ¦ m/M
T_1 ¦ t_1
a-A ¦ A-a
x ¦ X
\phi ¦ \Phi
Nk ¦ nK
""",
    "digits with spaces": r"""
204 ¦ 2 0 4
12 ¦ 1 2
123 ¦ 1 23
1234 ¦ 12 34
100 ¦ 10 0
3.14 ¦ 3. 14
57 ¦ 5\ 7
57 ¦ 5\, 7
57 ¦ 5~7
1000 ¦ 1 0 0 0
42 ¦ 4\quad 2
25 ¦ \text{2 5}
""",
    "units": r"""
5\text{ cm} ¦ 5\text{ km}
5\text{ cm} ¦ 5\text{ m}
12\text{ inches} ¦ 12\text{ feet}
18\text{ dollars} ¦ 18\text{ cents}
\$5 ¦ 5\text{ cents}
\$5 ¦ 5¢
3\text{ hours} ¦ 3\text{ minutes}
90\text{ seconds} ¦ 90\text{ minutes}
2\text{ kg} ¦ 2\text{ g}
2\text{ kg} ¦ 2\text{ lb}
36\text{ cm}^2 ¦ 36\text{ cm}
36\text{ m}^2 ¦ 36\text{ m}^3
36\text{ m}^2 ¦ 36\text{ cm}^2
100\text{ mL} ¦ 100\text{ L}
7\text{ days} ¦ 7\text{ weeks}
7\text{ years} ¦ 7\text{ months}
60\text{ mph} ¦ 60\text{ km/h}
5 \mathrm{~cm} ¦ 5 \mathrm{~mm}
10\text{ meters} ¦ 10\text{ miles}
4\text{ gallons} ¦ 4\text{ quarts}
1\text{ m} ¦ 10\text{ cm}
5 km ¦ 5 cm
""",
    "degrees and radians": r"""
30^\circ ¦ 30\text{ radians}
2\text{ radians} ¦ 2^\circ
30^\circ ¦ 60^\circ
""",
    "bases": r"""
2516_8 ¦ 2516
2516_8 ¦ 2516_{10}
2516_8 ¦ 2516_7
101_2 ¦ 101
101_2 ¦ 110_2
4210_{5} ¦ 4210
4210_{5} ¦ 4210_{6}
58_9 ¦ 58_{10}
1A_{16} ¦ 1A
23_{\text{eight}} ¦ 23_{\text{nine}}
""",
    "percent": r"""
5\% ¦ 0.5\%
5\% ¦ 500
5\% ¦ 0.5
10\% ¦ 10\text{ cm}
7\% ¦ 7‰
1\% ¦ 1^\circ
2\% ¦ \$2
10\%, 20\% ¦ 10\%, 30\%
""",
    "sets, tuples, intervals": r"""
\{1,2\} ¦ (1,2)
\{1,2\} ¦ [1,2]
(1,2) ¦ [1,2)
(1,2) ¦ (2,1)
(1,2,3) ¦ (1,3,2)
(1,2,3) ¦ (1,2)
\{1,2\} ¦ \{1,2,3\}
\{(1,2)\} ¦ \{(2,1)\}
\{(1,2)\} ¦ \{1,2\}
(1,2),(3,4) ¦ (1,3),(2,4)
(1,2),(3,4) ¦ (1,2,3,4)
(0,1) ¦ \{0,1\}
\langle 1,2\rangle ¦ \langle 2,1\rangle
(1,2) ¦ 12
1,2 ¦ 1.2
[0,1] ¦ \{0,1\}
(-1,1) ¦ \pm 1
\{3\} ¦ (3,3)
(a,b) ¦ (b,a)
(0,\infty) ¦ [0,\infty)
\{1,2\}\cup\{3\} ¦ \{1,2\}
""",
    "a.m. and p.m.": r"""
3:00\text{ a.m.} ¦ 3:00\text{ p.m.}
3\text{ a.m.} ¦ 3\text{ p.m.}
10:30\text{ AM} ¦ 10:30\text{ PM}
10:30 am ¦ 10:30 pm
12:00\text{ noon} ¦ 12:00\text{ midnight}
5:15\text{ p.m.} ¦ 5:51\text{ p.m.}
9:05\text{ a.m.} ¦ 9:50\text{ a.m.}
11\text{ p.m.} ¦ 11\text{ a.m.}
""",
    "precision": r"""
\frac{1}{3} ¦ 0.3333333
\frac{2}{3} ¦ 0.6666667
\sqrt{2} ¦ 1.4142136
\pi ¦ 3.1415927
\pi ¦ \frac{22}{7}
\pi ¦ \frac{355}{113}
e ¦ 2.7182818
2 ¦ 2.0000001
1 ¦ 0.9999999
1 ¦ 0.99999999
10^{-7} ¦ 0
10^{-7} ¦ 2\times 10^{-7}
123456789.1234567 ¦ 123456789.1234564
6.02\times 10^{23} ¦ 6.022\times 10^{23}
1.6\times 10^{-19} ¦ 1.7\times 10^{-19}
10^{20} ¦ 10^{20}+1
\ln 2 ¦ 0.6931472
\frac{1}{7} ¦ 0.142857
\sqrt{3} ¦ 1.7320508
(\frac{1}{3}, 1) ¦ (0.3333333, 1)
\{\sqrt{2}\} ¦ \{1.4142136\}
\frac{\pi}{2} ¦ 1.5707963
""",
    "words": r"""
\text{yes} ¦ \text{no}
\text{even} ¦ \text{odd}
\text{true} ¦ \text{false}
\text{Monday} ¦ \text{Tuesday}
\text{(A)} ¦ \text{(B)}
3\text{ million} ¦ 3\text{ billion}
3\text{ thousand} ¦ 3
3\text{ million} ¦ 3
\text{north} ¦ \text{south}
\text{increasing} ¦ \text{decreasing}
\text{acute} ¦ \text{obtuse}
\text{no solution} ¦ 0
""",
    "signs and places": r"""
x^{12} ¦ x^{1}2
2^{10} ¦ 2\cdot 10
x_1 ¦ x_2
x_1 ¦ x1
\log_2 8 ¦ \log_3 8
\log x ¦ \ln x
\sqrt[3]{8} ¦ \sqrt{8}
3! ¦ 3
|x| ¦ x
\frac{a}{bc} ¦ \frac{a}{b}c
x<2 ¦ x>2
x<2 ¦ x\le 2
x\ne 2 ¦ x=2
\overline{AB} ¦ \overline{AC}
f(x)=x ¦ f(x)=-x
0.\overline{3} ¦ 0.3
0.\overline{12} ¦ 0.1\overline{2}
1\frac{1}{2} ¦ \frac{1}{2}
1\frac{1}{2} ¦ \frac{11}{2}
+2 ¦ -2
\lfloor 2.5\rfloor ¦ \lceil 2.5\rceil
""",
}

EQUAL = {
    "characters": r"""
\frac{1}{2} ¦ ½
\frac{1}{4} ¦ ¼
\frac{3}{4} ¦ ¾
\frac{1}{3} ¦ ⅓
\frac{2}{3} ¦ ⅔
\frac{5}{2} ¦ 2½
\sqrt{2} ¦ √2
\sqrt{2} ¦ √(2)
2\sqrt{3} ¦ 2√3
\sqrt{10} ¦ √10
\pi ¦ π
2\pi ¦ 2π
\infty ¦ ∞
x^2 ¦ x²
x^3+1 ¦ x³+1
6 ¦ 2×3
6 ¦ 2·3
-5 ¦ −5
-5 ¦ –5
x\le 2 ¦ x ≤ 2
x\ge 2 ¦ x ≥ 2
90^\circ ¦ 90°
\theta ¦ θ
\alpha+\beta ¦ α+β
1000 ¦ 1 000
6 ¦ 12÷2
\pm 2 ¦ ±2
[0,\infty) ¦ [0,∞)
\emptyset ¦ ∅
\{1\}\cup\{2\} ¦ \{1\}∪\{2\}
2^{10} ¦ 2¹⁰
""",
    "words for numbers": r"""
1000000 ¦ 1 million
1000000 ¦ 1\text{ million}
2500000 ¦ 2.5 million
3000000000 ¦ 3\text{ billion}
5000 ¦ 5\text{ thousand}
\$1,000,000 ¦ \$1 million
1200000 ¦ 1.2\text{ million dollars}
2\text{ million} ¦ 2,000,000
""",
    "logarithms": r"""
\ln 2 ¦ \log_e 2
\ln 2 ¦ \log_{e} 2
\ln x ¦ \log_e(x)
\log_e 3 ¦ \ln(3)
\log_2 8 ¦ 3
\ln e^2 ¦ 2
\frac{\ln 8}{\ln 2} ¦ 3
""",
    "decimals": r"""
\frac{1}{3} ¦ 0.\overline{3}
\frac{1}{3} ¦ 0.\bar{3}
\frac{4}{33} ¦ 0.\overline{12}
\frac{1}{6} ¦ 0.1\overline{6}
0.5 ¦ .5
0.5 ¦ 0.50
2 ¦ 2.
1.5 ¦ 1\frac{1}{2}
1.5 ¦ 1 1/2
\frac{7}{3} ¦ 2 1/3
12.50 ¦ 12.5
\sqrt{2} ¦ 1.41421356237
10^{20} ¦ 100000000000000000000
-0.25 ¦ -1/4
""",
    "units": r"""
5\text{ cm} ¦ 5
5\text{ cm} ¦ 5\text{ centimeters}
5 \mathrm{~cm} ¦ 5\,\text{cm}
1\text{ m} ¦ 100\text{ cm}
2\text{ hours} ¦ 120\text{ minutes}
\$5 ¦ 500\text{ cents}
36\text{ cm}^2 ¦ 36\text{ square centimeters}
36 ¦ 36\text{ cm}^2
3\text{ feet} ¦ 36\text{ inches}
1.5\text{ km} ¦ 1500\text{ m}
18\text{ dollars} ¦ \$18
7\text{ days} ¦ 7 days
24\text{ hours} ¦ 24\text{ h}
12\text{ apples} ¦ 12
90^\circ ¦ 90\text{ degrees}
15\text{ mph} ¦ 15\text{ miles per hour}
""",
    "bases": r"""
2516_8 ¦ 2516_{8}
101_2 ¦ 101_{\text{two}}
101_2 ¦ 5
58_9 ¦ 58_{9}
""",
    "times": r"""
3:00\text{ p.m.} ¦ 3:00 \text{ PM}
3:00\text{ p.m.} ¦ 3:00 pm
3\text{ p.m.} ¦ 3:00\text{ p.m.}
10:30\text{ a.m.} ¦ 10:30 AM
""",
    "percent": r"""
10\% ¦ 10 percent
10\% ¦ 0.1
0.25 ¦ 25\%
50 ¦ 50\%
12.5\% ¦ \frac{1}{8}
""",
    "sets, tuples, intervals": r"""
\{1,2\} ¦ \{2,1\}
\{1,2\} ¦ 1, 2
1,2 ¦ 2\text{ and }1
1,2 ¦ x=1 \text{ or } x=2
1,2 ¦ x=1, x=2
(1,2) ¦ \left(1,\,2\right)
(1,2) ¦ ( 1 , 2 )
\left(\frac{1}{2},1\right) ¦ (0.5,1)
x\in[1,2] ¦ [1,2]
[1,2] ¦ 1\le x\le 2
(2,\infty) ¦ x>2
\emptyset ¦ \{\}
\{3\} ¦ 3
(1,2),(3,4) ¦ (3,4),(1,2)
\pm 3 ¦ -3, 3
""",
    "words": r"""
\text{yes} ¦ Yes
\text{Evelyn} ¦ evelyn
\text{(B)} ¦ B
\text{(B)} ¦ (B)
\text{true} ¦ True
\text{odd} ¦ \textbf{odd}
\text{no solution} ¦ No solution
\text{June 20} ¦ June 20
""",
    "algebra": r"""
x^2-1 ¦ (x-1)(x+1)
\frac{1}{\sqrt{2}} ¦ \frac{\sqrt{2}}{2}
y=2x+1 ¦ 2x+1=y
2\sin x\cos x ¦ \sin 2x
a+b ¦ b+a
\frac{x}{2} ¦ 0.5x
\sqrt[3]{8} ¦ 2
e^{\ln 5} ¦ 5
|{-3}| ¦ 3
5! ¦ 120
\binom{4}{2} ¦ 6
3\times 10^5 ¦ 300000
2^{-1} ¦ \frac{1}{2}
\tfrac{3}{4} ¦ \dfrac{3}{4}
""",
}


def pairs(families: dict[str, str], family: str) -> list[tuple[str, str]]:
    """The pairs of a family."""
    lines = families[family].strip().splitlines()
    return [(one, other) for one, other in (line.split(" ¦ ") for line in lines)]
