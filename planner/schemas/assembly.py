"""In the making."""


def assemble(form, answers, source):
    raise NotImplementedError
