"""Static figures of the lessons: each `plot_*` draws on the axis it is given and returns it."""
