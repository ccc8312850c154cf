"""In class: assignments from one source, released as notebooks, and graded in a sandbox. README.md says how."""
