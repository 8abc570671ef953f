# Bars: the kernels of one problem, by ISA, with what the compiler made and the peers beside ours.
#
# bars.dat: place, rate, its lower and upper end, colour, text behind the bar, name. The parameters set
# highest (rate), last_place, left (margin) and unit.
load scripts . '/style.gp'

set xrange [0:highest * 1.4]
set yrange [last_place + 0.7:-0.7]
set xlabel unit
set border 3
set tics nomirror
set ytics scale 0
set grid xtics linetype 1 linecolor rgb '#dddddd'
set lmargin at screen left
set rmargin at screen 1 - 20.0 / image_width
set tmargin at screen 1 - (head + 6.0) / image_height
set bmargin at screen 50.0 / image_height
set key off

do for [format in 'svg png'] {
    set terminal @svg_terminal
    if (format eq 'png') { set terminal @png_terminal }
    set output work . '/image.' . format
    plot work . '/bars.dat' using (0):1:(0):2:($1 - 0.4):($1 + 0.4):5:ytic(7) with boxxyerror \
             linecolor rgb variable fillstyle solid 1.0 noborder, \
         '' using 2:1:3:4 with xerrorbars pointtype 0 linewidth 1 linecolor rgb '#000000', \
         '' using 4:1:6 with labels left offset char 0.7, 0
    set output
}
