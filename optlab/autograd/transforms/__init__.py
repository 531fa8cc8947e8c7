"""Transforms of functions: grad, vjp, jvp, hvp, jacobian, hessian, vmap and the gradient check."""
