# Heat map: the rate of one kernel over heads and head_dim.
#
# cells.dat: column, row, rate, its text, the text's colour. The parameters set the tics, x_count,
# y_count, highest (upper end of the scale) and unit.
load scripts . '/style.gp'

# Viridis at seven places: even steps in lightness, for every kind of colour vision. Named palettes
# need a newer gnuplot.
set palette defined (0 '#440154', 1 '#443983', 2 '#31688e', 3 '#21918c', 4 '#35b779', 5 '#90d743', \
                     6 '#fde725')
set cbrange [0:highest]
set cblabel unit
set xrange [-0.5:x_count - 0.5]
set yrange [-0.5:y_count - 0.5]
set xlabel 'heads'
set ylabel 'head_dim'
set tics scale 0
set lmargin at screen 80.0 / image_width
set rmargin at screen 1 - 110.0 / image_width
set tmargin at screen 1 - (head + 10.0) / image_height
set bmargin at screen 62.0 / image_height
set key off

do for [format in 'svg png'] {
    set terminal @svg_terminal
    if (format eq 'png') { set terminal @png_terminal }
    set output work . '/image.' . format
    # Boxes, since a picture of so few cells is blurred by viewers that smooth what they enlarge.
    plot work . '/cells.dat' using 1:2:(0.5):(0.5):3 with boxxyerror linecolor palette \
             fillstyle solid 1.0 noborder, \
         '' using 1:2:4:5 with labels textcolor rgb variable
    set output
}
