"""Layer kernels for float32."""
