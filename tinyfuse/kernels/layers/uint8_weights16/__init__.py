"""Layer kernels for uint8 layers, whose weights become int16."""
