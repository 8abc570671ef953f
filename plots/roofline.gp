# Roofline: measured ceilings as roofs, each case as a point.
#
# roofs.dat: line ends (FLOP/byte, GFLOP/s), a blank line between roofs. points.dat: one block per
# symbol. labels.dat: left end (FLOP/byte, GFLOP/s), text, degrees.
load scripts . '/style.gp'

set logscale xy
set xrange [x_min:x_max]
set yrange [y_min:y_max]
set lmargin at screen left
set rmargin at screen right
set tmargin at screen top
set bmargin at screen bottom
set xlabel 'arithmetic intensity (useful FLOP / compulsory byte)'
set ylabel 'GFLOP/s'
set format '%g'
set grid xtics ytics mxtics mytics linetype 1 linecolor rgb '#dddddd', linetype 1 linecolor rgb '#f2f2f2'
set key at screen 0.5, screen bottom - 52.0 / image_height center top horizontal maxcols 3 Left reverse \
    samplen 1 width 1

do for [format in 'svg png'] {
    set terminal @svg_terminal
    if (format eq 'png') { set terminal @png_terminal }
    set output work . '/image.' . format
    plot work . '/roofs.dat' using 1:2 with lines linewidth 1.5 linecolor rgb '#333333' notitle, \
         for [i = 1:series] work . '/points.dat' index i - 1 using 1:2 with points \
             pointtype series_symbol[i] pointsize 0.9 linecolor rgb series_color[i] \
             title series_title[i], \
         work . '/labels.dat' using 1:2:3:4 with labels left rotate variable notitle
    set output
}
