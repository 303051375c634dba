"""The questions of the short task, by kind."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    """`prefix` begins the answer, so that the next words are the answer itself; any of `accepted` is right."""

    name: str
    text: str
    prefix: str
    accepted: tuple[str, ...]


CAPITALS = {
    "France": "Paris", "Germany": "Berlin", "Italy": "Rome", "Spain": "Madrid", "Japan": "Tokyo", "Egypt": "Cairo",
    "Russia": "Moscow", "Greece": "Athens", "England": "London", "China": "Beijing", "Peru": "Lima", "Norway": "Oslo",
    "Portugal": "Lisbon", "Kenya": "Nairobi", "Austria": "Vienna", "Ireland": "Dublin",
}  # fmt: skip
OPPOSITES = {
    "hot": ("cold",), "up": ("down",), "big": ("small", "little", "tiny"), "fast": ("slow",), "day": ("night",),
    "wet": ("dry",), "full": ("empty",), "early": ("late",), "strong": ("weak",), "left": ("right",),
    "happy": ("sad", "unhappy"), "open": ("closed", "close", "shut"), "light": ("dark", "heavy", "darkness"),
    "true": ("false", "untrue"), "rich": ("poor",), "young": ("old",),
}  # fmt: skip
NEXT = {
    "Monday, Tuesday, Wednesday,": ("Thursday",), "January, February, March,": ("April",), "A, B, C, D,": ("E",),
    "one, two, three, four,": ("five",), "2, 4, 6, 8,": ("10",), "5, 10, 15, 20,": ("25",), "10, 9, 8, 7,": ("6",),
    "spring, summer, autumn,": ("winter",), "1, 3, 5, 7,": ("9",), "first, second, third,": ("fourth",),
    "10, 20, 30, 40,": ("50",), "Friday, Saturday,": ("Sunday",),
}  # fmt: skip
SUMS = {
    "2 + 2": ("4", "four"), "3 + 4": ("7", "seven"), "5 + 5": ("10", "ten"), "10 + 10": ("20", "twenty"), "6 + 1": ("7", "seven"),
    "9 - 4": ("5", "five"), "8 - 2": ("6", "six"), "2 x 3": ("6", "six"), "4 x 2": ("8", "eight"), "1 + 8": ("9", "nine"),
}  # fmt: skip
FACTS = {
    "What is a young cat called?": ("A young cat is called a", ("kitten",)),
    "What is a young dog called?": ("A young dog is called a", ("puppy", "pup")),
    "What do bees make?": ("Bees make", ("honey",)),
    "What does water become when it freezes?": ("When water freezes it becomes", ("ice", "solid", "a solid")),
    "How many days are in a week?": ("The number of days in a week is", ("7", "seven")),
    "How many months are in a year?": ("The number of months in a year is", ("12", "twelve")),
    "How many sides does a triangle have?": ("The number of sides of a triangle is", ("3", "three")),
    "How many legs does a spider have?": ("The number of legs of a spider is", ("8", "eight")),
    "Which planet do we live on?": ("We live on the planet", ("Earth",)),
    "What is the color of grass?": ("The color of grass is", ("green",)),
    "What is the color of snow?": ("The color of snow is", ("white",)),
    "Which star gives us daylight?": ("The star that gives us daylight is", ("the sun", "sun", "our sun")),
    "Who wrote Romeo and Juliet?": ("Romeo and Juliet was written by", ("William Shakespeare", "Shakespeare")),
    "What is the largest ocean on Earth?": ("The largest ocean on Earth is the", ("Pacific",)),
}
REPEATS = ("lantern", "window", "orange", "dolphin", "bridge", "carpet")
FIRST_LETTERS = ("table", "monkey", "garden", "river")

QUESTIONS: tuple[Question, ...] = (
    *(
        Question(f"capital-{land}", f"What is the capital of {land}?", f"The capital of {land} is", (city,))
        for land, city in CAPITALS.items()
    ),
    *(
        Question(f"opposite-{word}", f'What is the opposite of "{word}"?', f'The opposite of "{word}" is', accepted)
        for word, accepted in OPPOSITES.items()
    ),
    *(Question(f"next-{start}", "Continue the sequence by one step.", start, accepted) for start, accepted in NEXT.items()),
    *(Question(f"sum-{sum_}", f"What is {sum_}?", f"{sum_} =", accepted) for sum_, accepted in SUMS.items()),
    *(Question(f"fact-{text}", text, prefix, accepted) for text, (prefix, accepted) in FACTS.items()),
    *(Question(f"repeat-{word}", f'Repeat this word exactly: "{word}"', "The word is", (word,)) for word in REPEATS),
    *(
        Question(f"letter-{word}", f'What is the first letter of "{word}"?', f'The first letter of "{word}" is', (word[0],))
        for word in FIRST_LETTERS
    ),
)
