# What every image shares. Variables come from the parameters that `mhabench plot` writes: work (folder
# of the data), image_width, image_height (pixels), chart_title, problem_text, machine_text.

set encoding utf8
# Names hold underscores, which enhanced text would turn into subscripts.
svg_terminal = sprintf("svg size %d,%d fixed font 'DejaVu Sans,12' background 'white' noenhanced", \
                       image_width, image_height)
png_terminal = sprintf("pngcairo size %d,%d font 'DejaVu Sans,9' background 'white' noenhanced", \
                       image_width, image_height)

# Title, problem and machine in the upper left corner; `head` pixels are theirs.
head = problem_text eq '' ? 52 : 68
set label 1 chart_title at screen 20.0 / image_width, screen 1 - 18.0 / image_height left \
    font 'DejaVu Sans Bold'
set label 2 machine_text at screen 20.0 / image_width, screen 1 - (head - 16.0) / image_height left \
    textcolor rgb '#555555'
if (problem_text ne '') {
    set label 3 problem_text at screen 20.0 / image_width, screen 1 - 35.0 / image_height left
}

set border linewidth 0.8 linecolor rgb '#444444'
set tics textcolor rgb '#222222'
