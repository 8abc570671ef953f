# What the comparisons see: shares of slowed rows that were found, and rows called slower that were not.
#
# Called by hand, from the folder of the data that `power --summary FILE power.dat` writes:
#   gnuplot -e "data='power.dat'; image='power.png'" plots/power.gp
set encoding utf8

series = system("grep '^found' " . data . " | cut -d'\"' -f2 | sort -u | tr ' ,' '_;' | tr '\\n' ' '")
methods = system("grep '^false' " . data . " | cut -d'\"' -f2 | tr '\\n' ' '")
title_of(word) = system("echo '" . word . "' | tr '_;' ' ,'")

set terminal pngcairo size 1000, 420 font 'DejaVu Sans,10' background 'white' noenhanced
set output image
set multiplot layout 1, 2
set grid ytics linetype 1 linecolor rgb '#dddddd'
set border 3
set tics nomirror

set title 'slowed rows found, with 95 % limits'
set xlabel 'slow-down (%)'
set ylabel '% of tables'
set xrange [0.5:11]
set yrange [0:105]
set key bottom right samplen 1
plot for [i = 1:words(series)] "< grep '^found \"" . title_of(word(series, i)) . "\"' " . data \
    using ($3 + 0.08 * (i - 1)):4:5:6 with yerrorlines pointtype 5 + 2 * (i - 1) pointsize 1 \
    linewidth 1.5 linecolor i title title_of(word(series, i))

set title 'unchanged rows called SLOWER, and the upper 95 % limit'
unset xlabel
set ylabel 'rows in 1000'
set xrange [-0.6:words(methods) - 0.4]
set yrange [0.1:1000]
set logscale y
set xtics ('' 0)
do for [i = 1:words(methods)] { set xtics add (word(methods, i) i - 1) }
set boxwidth 0.5
unset key
set arrow 1 from graph 0, first 1 to graph 1, first 1 nohead dashtype 2 linecolor rgb '#555555'
set label 1 'one in 1000' at graph 0.01, first 1 left offset 0, 0.6 textcolor rgb '#555555'
plot for [i = 1:words(methods)] "< grep '^false \"" . word(methods, i) . "\"' " . data \
    using (i - 1):($3 > 0.1 ? $3 : 0.1):(0.1):4 with yerrorbars pointtype 5 pointsize 1.2 linewidth 2 linecolor i
unset multiplot
