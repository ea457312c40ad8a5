"""From a graph to a plan: which operators share a group, which kernels compute them, and in which order.

plan_graph      plans of one graph: runs the search and the strategies that improve its result.
plans           build a plan from groups, search the variants of a model, pick the plan that the options ask for.
variants        graphs that the rewrites make of the model.
groups          orders of operators, legal groups, the search for groups, and their lowering to stages and buffers.
kernel_choice   the kernel of each operator.
improve         strategies that improve a finished plan.
quick_estimate  figures without compiling.
banks           placement into memory banks.
pick_step, pick_by_cycles, fit_step
                choose between finished plans: of step graphs (--slide), by cycles (--count), in short steps
                (--max-step)
"""
