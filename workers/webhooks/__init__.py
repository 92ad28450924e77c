"""Webhooks: whom a decision's owner has called back, from the URL's check to the last attempt.

`guard.py` says where a call may go, `connection.py` holds it to that; `schedule.py` says when the next
attempt is due; `payload.py` writes what is sent, `secret.py` finds what signs it; `courier.py` makes the
attempts. What is kept of them is in workers/store/deliveries.py.
"""
