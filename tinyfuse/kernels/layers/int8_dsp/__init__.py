"""Layer kernels for int8 on cores with the DSP extension, and their portable C."""
