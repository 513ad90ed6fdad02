`kgateway.testing`: a real gateway for anyone's tests, also as pytest fixtures; `kgateway.embedded`: one inside a program.
