"""From a graph to a plan: which operators share a group, which kernels compute them, in which order.

variants      the graphs that the rewrites made of the model
rule_based_plan, searched, reordering, recomputing, idle_slides
              strategies: each makes plans, or a plan better
choose        which of the search's candidates --optimize and --max-ram ask for
search        which cuts of an order to make; legality: what may be a group; partition: groups by rule
order         other orders of the operators; estimate: which of them are worth a search
build         a plan of groups: lower (kernels by select, buffers, overlaps), then the arena
"""
