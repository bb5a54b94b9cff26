"""Pairs of a gold answer and an answer, by hand, at the edges of what graders get wrong.

A line is a gold answer, then answers that are right (after ≡) and wrong (after ≠).
"""

# ruff: noqa: E501

from __future__ import annotations

FRACTIONS = r"""
\frac{1}{2} ≡ 1/2 ≡ \dfrac{1}{2} ≡ \tfrac12 ≡ 0.5 ≡ \frac{2}{4} ≡ .5 ≠ \frac{1}{3} ≠ 2 ≠ 0.05
\frac{1}{3} ≡ 1/3 ≡ \frac13 ≡ \dfrac{2}{6} ≡ \frac{-1}{-3} ≠ 0.33 ≠ 0.3 ≠ \frac{3}{1} ≠ -\frac{1}{3}
\frac{3}{4} ≡ 0.75 ≡ 3/4 ≡ \frac{75}{100} ≡ \frac{6}{8} ≠ \frac{4}{3} ≠ 0.8
-\frac{1}{2} ≡ \frac{-1}{2} ≡ \frac{1}{-2} ≡ -0.5 ≡ -1/2 ≡ -\dfrac12 ≠ \frac{1}{2} ≠ 0.5
\frac{7}{3} ≡ 7/3 ≡ 2\frac{1}{3} ≡ \frac{14}{6} ≡ 2 + \frac{1}{3} ≠ 2.33 ≠ \frac{3}{7} ≠ 2
\frac{22}{7} ≡ 22/7 ≡ 3\frac{1}{7} ≡ \frac{44}{14} ≠ 3.14 ≠ \pi ≠ \frac{7}{22}
1.25 ≡ \frac{5}{4} ≡ 5/4 ≡ 1\frac{1}{4} ≡ 1.250 ≠ 1.2 ≠ \frac{4}{5} ≠ 12.5
\frac{a}{b} ≡ a/b ≡ \dfrac{a}{b} ≡ \frac{2a}{2b} ≠ \frac{b}{a} ≠ ab ≠ a-b
\frac{x+1}{2} ≡ (x+1)/2 ≡ \frac{x}{2}+\frac{1}{2} ≡ \frac12(x+1) ≠ x+\frac{1}{2} ≠ \frac{x+2}{2}
\frac{\sqrt{2}}{2} ≡ \frac{1}{\sqrt{2}} ≡ \sqrt{2}/2 ≡ \sqrt{\frac{1}{2}} ≡ \frac{\sqrt2}2 ≠ \sqrt{2} ≠ \frac{2}{\sqrt{2}}
\frac{\pi}{6} ≡ \pi/6 ≡ \frac{1}{6}\pi ≡ \dfrac{\pi}{6} ≠ \frac{6}{\pi} ≠ \frac{\pi}{3} ≠ 30
5 ≡ \frac{5}{1} ≡ 10/2 ≡ \frac{25}{5} ≡ 5.0 ≠ \frac{1}{5} ≠ \frac{5}{2}
0 ≡ \frac{0}{7} ≡ 0.0 ≡ 0/3 ≠ \frac{1}{0} ≠ \frac{7}{7}
\frac{19}{1296} ≡ 19/1296 ≡ \frac{38}{2592} ≠ \frac{19}{1269} ≠ 0.0147
\frac{1}{2}+\frac{1}{3} ≡ \frac{5}{6} ≡ 5/6 ≠ \frac{2}{5} ≠ \frac{1}{6}
\frac{2}{5} ≡ 0.4 ≡ 2/5 ≡ \frac{4}{10} ≠ \frac{5}{2} ≠ 0.25
\frac{m}{n^2} ≡ m/n^2 ≡ m n^{-2} ≠ \frac{m^2}{n} ≠ \frac{n^2}{m}
"""

UNITS = r"""
5 ≡ 5\text{ cm} ≡ 5 \text{ centimeters} ≡ 5\,\text{cm} ≡ 5 \mathrm{~cm} ≡ 5 cm ≡ 5 \text{ apples} ≠ 6\text{ cm} ≠ 50\text{ mm}
12 ≡ 12\text{ inches} ≡ 12 \text{ in} ≡ 12 inches ≡ 12\ \text{feet} ≠ 1\text{ foot} ≠ 21\text{ inches}
90 ≡ 90^\circ ≡ 90^{\circ} ≡ 90\text{ degrees} ≡ 90 degrees ≡ 90° ≠ 9^\circ ≠ 45^\circ ≠ \frac{\pi}{2}
90^\circ ≡ 90 ≡ 90^{\circ} ≡ 90 \text{ degrees} ≠ 80^\circ ≠ 80
18 ≡ \$18 ≡ 18\text{ dollars} ≡ 18 dollars ≡ \$18.00 ≡ 18.00 ≠ \$81 ≠ 18\text{ thousand}+1 ≠ 1.8
\$32,348 ≡ 32348 ≡ 32,348 ≡ \$32348 ≠ 32,384 ≠ \$3234.8
300 ≡ 300\text{ km/h} ≡ 300 \text{ miles per hour} ≡ 300\text{ mph} ≠ 30\text{ mph} ≠ 3000
24\text{ hours} ≡ 24 ≡ 24\text{ h} ≡ 24 \text{ hrs} ≠ 25 ≠ 42\text{ hours}
7 ≡ 7\text{ years} ≡ 7 \text{ years old} ≡ 7 \text{ days} ≠ 17\text{ years} ≠ 8\text{ years}
36 ≡ 36\text{ square units} ≡ 36\text{ cm}^2 ≡ 36 \text{ m}^2 ≡ 36\ \text{cm}^{2} ≠ 6\text{ cm}^2 ≠ 63
48 ≡ 48\text{ clips} ≡ 48 \text{ total} ≡ 48\text{ minutes} ≠ 84\text{ clips} ≠ 4.8
2.5 ≡ 2.5\text{ kg} ≡ 2.5 \mathrm{kg} ≡ 2.50\text{ kg} ≠ 25\text{ kg} ≠ 2\text{ kg}
1.6 ≡ 1.6\mathrm{~cm} ≡ 1.6 \text{ cm} ≡ 1.60\text{ cm} ≠ 16\text{ cm} ≠ 1.7\mathrm{~cm}
100 ≡ 100\text{ meters} ≡ 100 \text{ m} ≡ 100 meters ≠ 10\text{ m} ≠ 1000\text{ m}
\frac{3}{2} ≡ \frac{3}{2}\text{ hours} ≡ 1.5\text{ hours} ≡ 1.5 \text{ h} ≠ 15\text{ hours} ≠ \frac{2}{3}\text{ hours}
15 ≡ 15\text{ ways} ≡ 15 \text{ people} ≡ 15\text{ students} ≠ 51\text{ ways} ≠ 5\text{ people}
-4 ≡ -4\text{ °C} ≡ -4 \text{ degrees} ≡ -4^\circ ≠ 4\text{ °C} ≠ 4^\circ
8\pi ≡ 8\pi\text{ cm} ≡ 8\pi \text{ square units} ≡ 8 \pi ≠ 8\text{ cm} ≠ 16\pi\text{ cm}
"""

INTERVALS = r"""
(1,2) ≡ (1, 2) ≡ \left(1,2\right) ≡ \left( 1, 2 \right) ≡ (1.0,2.0) ≠ (2,1) ≠ [1,2] ≠ (1,3) ≠ (0,2)
[1,2] ≡ [1, 2] ≡ \left[1,2\right] ≡ [\frac{2}{2}, 2] ≠ (1,2) ≠ [1,2) ≠ (1,2] ≠ [1,3]
[1,2) ≡ [1, 2) ≡ \left[1,2\right) ≠ (1,2] ≠ (1,2) ≠ [1,2] ≠ [1,4)
(-\infty,3] ≡ (-\infty, 3] ≡ \left(-\infty, 3\right] ≡ (-\infty,3.0] ≡ (-\infty, \frac{6}{2}] ≠ (-\infty,3) ≠ (3,\infty) ≠ [3,-\infty)
(0,\infty) ≡ (0, \infty) ≡ (0, +\infty) ≡ \left(0,\infty\right) ≠ [0,\infty) ≠ (-\infty,0) ≠ (1,\infty)
[-2,7] ≡ [-2, 7] ≡ x \in [-2,7] ≡ \left[-2,7\right] ≠ [2,7] ≠ (-2,7) ≠ [-7,2]
[0,\infty) ≡ [0, \infty) ≡ \left[0,\infty\right) ≠ (0,\infty) ≠ (-\infty,0]
(1,2)\cup(3,4) ≡ (3,4)\cup(1,2) ≡ (1, 2) \cup (3, 4) ≡ \left(1,2\right)\cup\left(3,4\right) ≠ (1,2)\cup(3,5) ≠ (1,4) ≠ (1,2)
(-\infty,-1)\cup(1,\infty) ≡ (1,\infty)\cup(-\infty,-1) ≡ (-\infty, -1) \cup (1, \infty) ≠ (-1,1) ≠ (-\infty,-1]\cup[1,\infty)
(-\infty, -\sqrt{3}) ≡ \left(-\infty,-\sqrt{3}\right) ≡ (-\infty,-\sqrt3) ≠ (-\infty,\sqrt{3}) ≠ (-\infty,-3)
[\frac{1}{2},3] ≡ [0.5,3] ≡ [1/2, 3] ≡ \left[\frac12,3\right] ≠ [\frac{1}{3},3] ≠ [2,3] ≠ (\frac{1}{2},3)
(0,9)\cup(9,36) ≡ (0, 9) \cup (9, 36) ≡ (9,36)\cup(0,9) ≠ (0,36) ≠ (0,9] ≠ [0,9)\cup(9,36]
x\le 3 ≡ x \leq 3 ≡ x\leqslant 3 ≡ (-\infty,3] ≡ 3 \ge x ≠ x<3 ≠ x\ge 3 ≠ x\le 4
x>2 ≡ x > 2 ≡ (2,\infty) ≡ 2<x ≠ x<2 ≠ x\ge 2 ≠ x>3
1<x<2 ≡ 1 < x < 2 ≡ (1,2) ≠ 1\le x\le 2 ≠ 1<x<3 ≠ [1,2]
[-1,1] ≡ [-1, 1] ≡ \left[-1, 1\right] ≡ -1\le x\le 1 ≠ (-1,1) ≠ [1,-1] ≠ -1<x<1
(-5,5) ≡ (-5, 5) ≡ \left(-5,5\right) ≠ (5,-5) ≠ [-5,5] ≠ (-5,6)
(2,\infty) ≡ (2, \infty) ≡ \left(2,+\infty\right) ≡ (2,+\infty) ≠ [2,\infty) ≠ (-\infty,2)
"""

SETS = r"""
\{1,2\} ≡ \{2,1\} ≡ \{1, 2\} ≡ 1,2 ≡ 2, 1 ≡ \left\{1,2\right\} ≡ \{1,2,2\} ≠ \{1\} ≠ \{1,3\} ≠ \{1,2,3\} ≠ 12
1,2 ≡ 2,1 ≡ 1, 2 ≡ \{1,2\} ≡ 1 \text{ and } 2 ≡ 1 and 2 ≠ 1 ≠ 2 ≠ 1,2,3 ≠ 1,3
1,-2 ≡ -2,1 ≡ -2, 1 ≡ \{-2,1\} ≠ 1,2 ≠ -1,2 ≠ 2
\{-1,0,1\} ≡ \{1,0,-1\} ≡ -1,0,1 ≡ 0, 1, -1 ≠ \{-1,1\} ≠ \{0,1\} ≠ -1,0,2
3,5,7 ≡ 7,5,3 ≡ \{3,5,7\} ≡ 3, 5, 7 ≡ 5, 3, 7 ≠ 3,5 ≠ 3,5,8 ≠ 357
\{\frac{1}{2},3\} ≡ \{3,\frac{1}{2}\} ≡ 0.5,3 ≡ 3, 1/2 ≠ \{2,3\} ≠ \{\frac{1}{2}\} ≠ \frac{3}{2}
\pm 3 ≡ 3,-3 ≡ -3, 3 ≡ \{3,-3\} ≡ \pm3 ≠ 3 ≠ -3 ≠ \pm 4
\emptyset ≡ \{\} ≡ \varnothing ≠ \{0\} ≠ 0 ≠ 1
\{x,y\} ≡ \{y,x\} ≡ x,y ≠ \{x\} ≠ \{x,z\} ≠ xy
\sqrt{2},-\sqrt{2} ≡ -\sqrt{2},\sqrt{2} ≡ \pm\sqrt{2} ≡ \{\sqrt2,-\sqrt2\} ≠ \sqrt{2} ≠ 2,-2
2,3,4,6 ≡ 6,4,3,2 ≡ \{2,3,4,6\} ≡ 2, 3, 4, 6 ≠ 2,3,4 ≠ 2,3,4,5 ≠ 2,3,4,6,12
(1,2),(3,4) ≡ (3,4),(1,2) ≡ (1, 2), (3, 4) ≡ \{(1,2),(3,4)\} ≠ (2,1),(3,4) ≠ (1,2) ≠ (1,2),(3,5)
(0,0),(1,1) ≡ (1,1),(0,0) ≡ (0, 0), (1, 1) ≠ (0,1),(1,0) ≠ (0,0) ≠ (1,1)
1+\sqrt{2},1-\sqrt{2} ≡ 1-\sqrt{2},1+\sqrt{2} ≡ 1\pm\sqrt{2} ≡ 1 \pm \sqrt{2} ≠ 1+\sqrt{2} ≠ 2\pm 1
\{0\} ≡ 0 ≡ \{0\} ≠ \emptyset ≠ 1
a,b,c ≡ c,b,a ≡ \{a,b,c\} ≠ a,b ≠ abc
5,11 ≡ 11,5 ≡ 5 \text{ and } 11 ≡ \{11,5\} ≠ 5 ≠ 511 ≠ 5,12
"""

PERCENT = r"""
10 ≡ 10\% ≡ 10% ≡ 10 \% ≡ 10 percent ≡ 10.0\% ≠ 11\% ≠ 1\% ≠ 0.01
10\% ≡ 10 ≡ 10% ≡ 0.1 ≡ \frac{1}{10} ≡ 10\,\% ≠ 1 ≠ 0.01 ≠ 100\%
50\% ≡ 50 ≡ 0.5 ≡ \frac{1}{2} ≡ 50 percent ≠ 5 ≠ 0.05 ≠ 5000
25 ≡ 25\% ≡ 25% ≡ 25 \text{ percent} ≡ 25.0 ≠ 75\% ≠ 0.25 ≠ 2.5
150 ≡ 150\% ≡ 150% ≡ 150.0\% ≠ 15\% ≠ 1.5 ≠ 50\%
12.5\% ≡ 12.5 ≡ 0.125 ≡ \frac{1}{8} ≡ 12.50\% ≠ 125 ≠ 1.25\% ≠ 12
3 ≡ 3\% ≡ 3% ≡ 3 percent ≠ 30\% ≠ 0.03 ≠ 0.3\%
100\% ≡ 100 ≡ 1 ≡ 100% ≠ 10 ≠ 0.1
0.25 ≡ 25\% ≡ 25% ≡ \frac{1}{4} ≠ 25 ≠ 2.5\% ≠ 0.025
0.07 ≡ 7\% ≡ 7% ≡ \frac{7}{100} ≠ 7 ≠ 70\% ≠ 0.7
33\frac{1}{3}\% ≡ 33\frac{1}{3} ≡ \frac{100}{3}\% ≠ 33 ≠ 34\% ≠ 30
62.5 ≡ 62.5\% ≡ 62.5% ≡ 62.50\% ≠ 0.625 ≠ 37.5\% ≠ 6.25
-5 ≡ -5\% ≡ -5% ≠ 5\% ≠ 5 ≠ -0.05
0.5\% ≡ 0.5 ≡ 0.005 ≡ 0.50% ≠ 5 ≠ 50\% ≠ 0.05
20 ≡ 20\% ≡ 20 \% ≡ 20 percent ≠ 80\% ≠ 0.2 ≠ 200
8 ≡ 8\% ≡ 8% ≡ 8 \text{ percent} ≠ 80 ≠ 0.08 ≠ 0.8\%
"""

THOUSANDS = r"""
1000 ≡ 1,000 ≡ 1{,}000 ≡ 1\,000 ≡ 1 000 ≡ 1000.0 ≡ \$1,000 ≠ 100 ≠ 10000 ≠ 1,001
1,000 ≡ 1000 ≡ 1{,}000 ≡ 1,000.00 ≠ 1 ≠ 1.0 ≠ 100
12,345 ≡ 12345 ≡ 12{,}345 ≡ 12\,345 ≡ 12 345 ≠ 12,354 ≠ 1234 ≠ 12.345
1000000 ≡ 1,000,000 ≡ 1{,}000{,}000 ≡ 1\,000\,000 ≡ 10^6 ≡ 10^{6} ≠ 100,000 ≠ 10^7 ≠ 1,000
12,345.67 ≡ 12345.67 ≡ 12{,}345.67 ≡ 12,345.670 ≠ 12345 ≠ 1234567 ≠ 12345.76
70000 ≡ 70,000 ≡ \$70,000 ≡ 70{,}000 ≡ 70,000\text{ dollars} ≡ 70,000 dollars ≠ 7,000 ≠ 700,000 ≠ 70
250,000 ≡ 250000 ≡ 250{,}000 ≡ 2.5 \times 10^5 ≡ 250 \times 10^{3} ≠ 25,000 ≠ 2.5
2,048 ≡ 2048 ≡ 2{,}048 ≡ 2^{11} ≠ 2,480 ≠ 248 ≠ 20,48
10,080 ≡ 10080 ≡ 10\,080 ≡ 10{,}080 ≠ 1,080 ≠ 10,800 ≠ 10008
123456789 ≡ 123,456,789 ≡ 123{,}456{,}789 ≡ 123\,456\,789 ≠ 123,456,798 ≠ 123456
-5,000 ≡ -5000 ≡ -5{,}000 ≡ -5\,000 ≠ 5,000 ≠ -500 ≠ -50,000
999 ≡ 999.0 ≡ 999 ≠ 9,99 ≠ 1,000 ≠ 9990
5,040 ≡ 5040 ≡ 7! ≡ 5{,}040 ≠ 504 ≠ 5,400 ≠ 6!
1,234.5 ≡ 1234.5 ≡ 1{,}234.5 ≡ 1,234.50 ≠ 12345 ≠ 1.2345 ≠ 1234
640,000 ≡ 640000 ≡ 640{,}000 ≡ 6.4 \times 10^{5} ≠ 64,000 ≠ 640 ≠ 6.4
6{,}227{,}020{,}800 ≡ 6227020800 ≡ 6,227,020,800 ≡ 13! ≠ 6227020801 ≠ 12!
4,200 ≡ 4200 ≡ 4\,200 ≡ 4{,}200 ≠ 420 ≠ 4,020 ≠ 4.2
"""

LATEX = r"""
2\sqrt{3} ≡ 2\sqrt3 ≡ \sqrt{12} ≡ 2 \sqrt{3} ≡ \sqrt{3}\cdot 2 ≠ 3\sqrt{2} ≠ \sqrt{6} ≠ 2+\sqrt{3}
x^2+2x+1 ≡ (x+1)^2 ≡ 1+2x+x^2 ≡ x^{2}+2x+1 ≡ x(x+2)+1 ≠ x^2+2x ≠ (x-1)^2 ≠ x^2+1
y=2x+1 ≡ y = 2x + 1 ≡ 2x+1 ≡ y=1+2x ≠ y=2x-1 ≠ y=x+2 ≠ 2x
5 ≡ x=5 ≡ x = 5 ≡ 5.0 ≡ n = 5 ≡ \mathbf{5} ≡ $5$ ≠ x=6 ≠ x=-5 ≠ 55
x=5 ≡ 5 ≡ x = 5 ≡ x=5.0 ≠ 6 ≠ x=6 ≠ -5
\begin{pmatrix}1\\2\end{pmatrix} ≡ \begin{pmatrix} 1 \\ 2 \end{pmatrix} ≡ \begin{bmatrix}1\\2\end{bmatrix} ≠ \begin{pmatrix}2\\1\end{pmatrix} ≠ \begin{pmatrix}1\\3\end{pmatrix}
\begin{pmatrix}1&2\\3&4\end{pmatrix} ≡ \begin{bmatrix}1&2\\3&4\end{bmatrix} ≡ \begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix} ≠ \begin{pmatrix}1&3\\2&4\end{pmatrix} ≠ \begin{pmatrix}1&2\\3&5\end{pmatrix}
\left(3,\frac{\pi}{2}\right) ≡ (3, \frac{\pi}{2}) ≡ (3,\pi/2) ≡ \left( 3, \frac{\pi}{2} \right) ≠ (3,\pi) ≠ (\frac{\pi}{2},3) ≠ (2,\frac{\pi}{2})
\text{Evelyn} ≡ Evelyn ≡ \text{ Evelyn } ≡ \textbf{Evelyn} ≠ \text{Briana} ≠ Angela
\text{(B)} ≡ B ≡ (B) ≡ \text{B} ≠ C ≠ (C) ≠ \text{(A)}
\text{June 20} ≡ June 20 ≡ \text{June }20 ≠ June 21 ≠ \text{July 20}
\text{even} ≡ even ≡ \text{even} ≠ odd ≠ \text{odd}
3+2i ≡ 2i+3 ≡ 3 + 2i ≡ 3+2 i ≠ 3-2i ≠ 2+3i ≠ 5i
2^{10} ≡ 1024 ≡ 2^10 ≡ 4^5 ≡ 4^{5} ≠ 1042 ≠ 2^{11} ≠ 20
\binom{5}{2} ≡ 10 ≡ \dbinom{5}{2} ≡ \frac{5!}{2!3!} ≠ 20 ≠ \binom{5}{1} ≠ \frac{5}{2}
\log_2 8 ≡ 3 ≡ \log_{2}8 ≡ \log_2(8) ≠ 4 ≠ \log_2 9 ≠ 8
1.5\times 10^{3} ≡ 1500 ≡ 1.5 \cdot 10^3 ≡ 1.5e3 ≡ 1,500 ≠ 150 ≠ 1.5 ≠ 15000
4e33 ≡ 4 \times 10^{33} ≡ 4\cdot10^{33} ≡ 4e33 ≡ 4.0e33 ≠ 4e32 ≠ 5e33 ≠ 4
2.88e-19 ≡ 2.88 \times 10^{-19} ≡ 2.880e-19 ≡ 28.8e-20 ≠ 4.6e-24 ≠ 2.88e-18 ≠ -2.88e-19 ≠ 0
0 ≡ 0.000 ≡ 0e5 ≠ 1e-9 ≠ 0.0000001
0.0003 ≡ 3e-4 ≡ 0.03\% ≡ \frac{3}{10000} ≠ 0.0004 ≠ 0.003 ≠ 0.00030004
4.4e7 ≡ 4.4 \times 10^7 ≡ 44000000 ≡ 44,000,000 ≡ 4.4E7 ≠ 4.4 ≠ 4.4e6 ≠ 47
\sin x ≡ \sin(x) ≡ \sin{x} ≠ \cos x ≠ \sin y ≠ x
p-q ≡ p - q ≡ -q+p ≡ -(q-p) ≠ q-p ≠ p+q ≠ pq
6 - 5i ≡ 6-5i ≡ -5i+6 ≠ 6+5i ≠ 5-6i ≠ 6
\pi ≡ \pi ≡ 1\pi ≡ \dfrac{2\pi}{2} ≠ 3.14 ≠ 2\pi ≠ 3
2:3 ≡ 2/3 ≡ \frac{2}{3} ≡ 2 : 3 ≠ 3:2 ≠ 2 ≠ 5
11 ≡ 11. ≡ 11.0 ≡ \,11 ≡ 11\! ≡ {11} ≠ 1.1 ≠ 111 ≠ 1
"""

EDGES = {
    "fractions": FRACTIONS,
    "units": UNITS,
    "intervals": INTERVALS,
    "sets": SETS,
    "percent": PERCENT,
    "thousands separators": THOUSANDS,
    "LaTeX variants": LATEX,
}


def pairs(edge: str) -> list[tuple[str, str, bool]]:
    """(gold, answer, whether it is right) of an edge."""
    made = []
    for line in EDGES[edge].strip().splitlines():
        gold, *rights = line.split(" ≠ ")[0].split(" ≡ ")
        made += [(gold, answer, True) for answer in rights]
        made += [(gold, answer, False) for answer in line.split(" ≠ ")[1:]]
    return made
