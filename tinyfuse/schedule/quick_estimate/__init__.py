"""Quick estimates of RAM and instructions, without compiling a plan."""
