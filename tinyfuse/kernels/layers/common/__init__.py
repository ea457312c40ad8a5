"""Parts that layer kernels of several dtypes and cores share."""
