"""What a report says about each mistake: what was expected and why, never the line to write."""

from __future__ import annotations

MESSAGES: dict[str, str] = {
    "no_bias_correction": (
        "The averages start at zero, so the first ones are too small. The formula divides that "
        "bias out; compare your first step with the size of the learning rate."
    ),
    "bias_correction_of_one_moment": (
        "Both moments start at zero, and both are too small at first; only one of them is "
        "corrected here, so the ratio of the two is off in the first steps."
    ),
    "epsilon_inside_root": (
        "Epsilon stands at another place than in the formula: it keeps the denominator from zero "
        "after the root has been taken. Inside the root its effect is that of its own root."
    ),
    "epsilon_outside_root": (
        "Epsilon stands at another place than in the formula. Look at what the root is taken of, "
        "and whether what epsilon is added to has been corrected already."
    ),
    "coupled_decay": (
        "The decay passes through the moments, as if it were a part of the gradient. The point of "
        "AdamW is that weights shrink by the same share whatever the sizes of their gradients."
    ),
    "decay_without_rate": (
        "The weights shrink by the same share at every learning rate. In AdamW the rate scales "
        "the decay too, so that a schedule slows both."
    ),
    "decay_after_step": (
        "The weights that decay are those after the step, so that the step itself shrinks as well. "
        "Which comes first in the formula?"
    ),
    "wrong_sign": (
        "Something goes up where it should go down, or is added where it should be subtracted. The "
        "gradient points uphill: try one step on x**2 from x = 1."
    ),
    "shared_state": (
        "The same calls on a second object gave other results than on the first: the two share "
        "what they keep. Where is it made: once for the class, or once for each object?"
    ),
    "changed_in_place": (
        "Arrays that were given to your class, or that it has given back, are others afterwards. "
        "Their owner still uses them: make new arrays instead of writing into these."
    ),
    "state_not_kept": (
        "Each step acts as if it were the first: what earlier steps have found is lost. Look at "
        "what the object still knows when the next step begins."
    ),
    "late_synchronisation": (
        "The slow weights are synchronized later than they should be. Count on your fingers: after "
        "which steps does it happen with k = 2?"
    ),
    "early_synchronisation": (
        "The slow weights are synchronized earlier than they should be. Count on your fingers: "
        "after which steps does it happen with k = 2?"
    ),
    "slow_weights_not_started": (
        "The slow weights begin at another place than they should. At the very start, before any "
        "step, fast and slow weights are the same."
    ),
    "fast_not_reset": (
        "The slow weights are computed, and the fast ones go on as if nothing had happened. After "
        "a synchronization both stand at the same place."
    ),
    "gradient_twice": (
        "The gradient acts twice in one step. Follow it through your code: where does it come in, "
        "and how often?"
    ),
    "gradient_accumulated": (
        "Gradients (or their squares) of all steps are summed up without ever being forgotten. The "
        "formula has only the new gradient, and an average that fades."
    ),
    "step_count_off_by_one": (
        "The corrections use another step number than the step that is taken. Which number should "
        "the very first step have, and how often is it counted up in one step?"
    ),
    "hidden_broadcast": (
        "Arrays of different shapes meet, and NumPy broadcasts them without a word. Each parameter "
        "has slots of its own, of its own shape, and each of its elements an entry."
    ),
    "missing_square": (
        "The second moment is the average of another quantity than it should be. What makes it "
        "positive, whatever the signs of the gradients?"
    ),
    "missing_root": (
        "The step is divided by a quantity of the wrong unit. If all gradients were ten times as "
        "large, the step should hardly change."
    ),
    "swapped_betas": (
        "The two averages fade at each other's pace. Which of the two should remember longer, and "
        "which number says so?"
    ),
    "dampened_momentum": (
        "The new gradient comes in with a smaller weight than the formula gives it, so that the "
        "velocity is an average instead of a sum that fades."
    ),
    "nesterov_order": (
        "The pieces are right and their order is not: look at which velocity (before or after this "
        "gradient) enters the step, and with which factor."
    ),
    "rate_ignored": (
        "With another learning rate the steps are the same. Where does the number that the "
        "constructor was given end up?"
    ),
    "hyperparameter_ignored": (
        "With another {setting} the results are the same. Where does the number that the "
        "constructor was given end up?"
    ),
    "averages_wrong_weights": (
        "An average is taken of other numbers, or with other weights, than in the formula. Try it "
        "with constant numbers: what should the average of them be?"
    ),
    "gradient_overwritten": (
        "A number that is used in two places has the gradient of one of them alone. Every path "
        "from it to the result has a part in its gradient."
    ),
    "wrong_order": (
        "A gradient is passed on before it is complete, or to another place than it belongs to. "
        "Which numbers must have had their turn before this one?"
    ),
    "wrong_rule": (
        "The derivative of one operation is another than the formula gives. Compare it with a "
        "difference quotient: (f(x + h) - f(x)) / h with a small h."
    ),
    "wrong_input": (
        "A derivative is taken at another number than it belongs to. Which number went into this "
        "function on the way forward, and is it the one that its derivative gets?"
    ),
    "reference_kept": (
        "What was recorded has changed since. The arrays belong to the caller, who goes on writing "
        "into them: is it these that you keep, or what they were?"
    ),
    "nothing_recomputed": (
        "The functions are not run again as often as they should be in the backward pass: either "
        "the values between the ends of segments are kept, or too much is computed twice."
    ),
    "not_normalized": (
        "A length is another than it should be. What is the norm of the vector before the product, "
        "and of each filter of the result?"
    ),
    "bias_moved": (
        "Parameters without filters (biases) have no norm to be scaled to; in the landscape they "
        "stay where they are."
    ),
    "raises": "Your class could not be called to the end.",
    "wrong_shape": "The result has another form than the one that is asked for.",
    "too_slow": (
        "Your class did not answer in time: is there a loop that never ends, or work that grows "
        "with every step?"
    ),
}

UNKNOWN = (
    "The numbers differ, and none of the mistakes that are known explains it. The first difference "
    "says where to look; write the formula beside your code and compare them symbol by symbol."
)
FLOAT32 = (
    "The numbers agree to about six digits and no further. Arrays of float32 have no more: are all "
    "of yours float64, as the ones that are given?"
)
NO_NUMBER = (
    "The results are NaN from the first step on. That comes of 0 / 0, of inf / inf or of the root "
    "of a negative number: print what goes into each root and each division of your first step."
)
RIGHT = "All parts agree with the formula."
HIDDEN = "This check has cases of its own, which are not shown."
