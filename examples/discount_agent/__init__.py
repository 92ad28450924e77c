"""A pricing agent: it routes a customer's message, fetches what is known of the customer, prices an offer.

models.py    what the model is asked: the route, the offer
stores.py    what is known of a customer: the hot store and the cold one
seed.py      the made-up customers in them
rules.py     what may be offered to whom
runs.py      what is kept of a run
agent.py     the three phases
report.py    a reply in words
"""
