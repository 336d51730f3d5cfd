"""The budget book: one file that adds up everything that was spent on one confidential table."""

from pegsynth.book.book_file import Book, Entry, create_book, read_book
from pegsynth.book.book_policy import BookPolicy
from pegsynth.book.booking import (
    NO_BOOKING,
    Booking,
    add_earlier,
    booked,
    booked_events,
    withdraw,
)
from pegsynth.book.costs import Cost, added, cost_of

__all__ = [
    "NO_BOOKING",
    "Book",
    "BookPolicy",
    "Booking",
    "Cost",
    "Entry",
    "add_earlier",
    "added",
    "booked",
    "booked_events",
    "cost_of",
    "create_book",
    "read_book",
    "withdraw",
]
