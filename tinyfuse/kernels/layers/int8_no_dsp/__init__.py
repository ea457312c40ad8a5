"""Layer kernels for int8 on cores without the DSP extension (Cortex-M0+, M3)."""
