"""From a graph to a plan: group, choose kernels, stream rows, size buffers."""
