"""Typical wrong answers to the exercises, and what the check says of each.

An answer is the solution with one change: `instead_of` becomes `write`.
"""

from typing import NamedTuple


class Mistake(NamedTuple):
    instead_of: str
    write: str
    message: str
    """A part of the sentence that the check prints."""


WRONG_ANSWERS: dict[str, tuple[Mistake, Mistake, Mistake]] = {
    "01_attention": (
        Mistake("dim=-1", "dim=-2", "not 1: softmax over which axis?"),
        Mistake(" / math.sqrt(d_k)", "", "multiplied by 1.0000 before the softmax, not by 1/√d_k"),
        Mistake("math.sqrt(d_k)", "d_k", "multiplied by 0.0625 before the softmax, not by 1/√d_k"),
    ),
    "02_masks": (
        Mistake(
            "is_token[:, None, :].expand(-1, ids.shape[1], -1)",
            "is_token[:, :, None].expand(-1, -1, ids.shape[1])",
            "position 3, which is padding",
        ),
        Mistake("<= positions[:, None]", ">= positions[:, None]", "position 1, which is later"),
        Mistake(
            "scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)",
            "scores.softmax(dim=-1) * mask",
            "apply the mask before the softmax",
        ),
    ),
    "03_heads": (
        Mistake(
            "x.view(*x.shape[:2], n_heads, -1).transpose(1, 2)",
            "x.view(len(x), n_heads, x.shape[1], -1)",
            "number 0 of head 0 at position 1 is column 3 of position 0",
        ),
        Mistake(
            "x.view(*x.shape[:2], n_heads, -1).transpose(1, 2)",
            "x.view(*x.shape[:2], -1, n_heads).permute(0, 3, 1, 2)",
            "number 1 of head 0 at position 0 is column 2 of position 0, not column 1",
        ),
        Mistake(
            "heads.transpose(1, 2).flatten(2)",
            "heads.reshape(len(heads), heads.shape[2], -1)",
            "which axes must be adjacent?",
        ),
    ),
    "04_feed_forward": (
        Mistake(".relu()", "", "the ReLU between the matrices is missing"),
        Mistake(
            "return inner @ w_2 + b_2",
            "return ((x @ w_1 + b_1) @ w_2 + b_2).relu()",
            "the ReLU belongs before W_2, not after it",
        ),
        Mistake("inner @ w_2 + b_2", "inner @ w_2", "for x = 0 and b_1 = 0 the result must be b_2"),
    ),
    "05_residual": (
        Mistake("x + sublayer(x)", "sublayer(x)", "where is the residual connection?"),
        Mistake("(centred**2).mean(", "centred.var(", "standard deviation of a vector is 0.935"),
        Mistake(
            "summed = x + sublayer(x)",
            "summed = x + sublayer((x - x.mean()) / x.std())",
            "normalization comes after the sum",
        ),
    ),
    "06_embedding": (
        Mistake(" * math.sqrt(matrix.shape[1])", "", "an embedding is 1 times the row"),
        Mistake("math.sqrt(matrix.shape[1])", "matrix.shape[1]", "is 16 times the row"),
        Mistake(
            "states @ matrix.T",
            "states @ matrix.T * math.sqrt(matrix.shape[1])",
            "a logit is 4 times the dot product",
        ),
    ),
    "07_positions": (
        Mistake(
            "torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)",
            "torch.cat([angle.sin(), angle.cos()], dim=-1)",
            "sines and cosines alternate",
        ),
        Mistake("(two_i / d_model)", "(2 * two_i / d_model)", "but the exponent must be 2/16"),
        Mistake("10_000", "1_000", "but the exponent must be 2/16 = 0.1250"),
    ),
    "08_parameters": (
        Mistake("vocab_size * d_model", "3 * vocab_size * d_model", "embedding matrix, 2 times"),
        Mistake("2 * attention", "attention", "which is one attention in each layer of a stack"),
        Mistake(
            "d_model * d_ff + d_ff + d_ff * d_model + d_model",
            "2 * d_model * d_ff",
            "which is the biases of the feed-forward networks",
        ),
    ),
    "09_byte_pairs": (
        Mistake("counts[pair] += n", "counts[pair] += 1", "as often as its word occurs?"),
        Mistake(
            "            if symbols and (symbols[-1], symbol) == pair:\n"
            "                symbols[-1] += symbol\n",
            "            if symbols and symbols[-1] + symbol == ''.join(pair):\n"
            "                symbols[-1] += symbol\n",
            "merging ('a', 'bc') in ('ab', 'c', 'a', 'bc')",
        ),
        Mistake("merged[tuple(symbols)] = n", "merged[tuple(symbols)] = 1", "which occurs 5 times"),
    ),
    "10_batches": (
        Mistake(
            "sorted(range(len(lengths)), key=lambda pair: max(lengths[pair]))",
            "range(len(lengths))",
            "are the pairs of a batch of similar length?",
        ),
        Mistake("return [*found, batch]", "return found", "is in 0 batches, not in one"),
        Mistake(
            "len(rows) * max(source, target)",
            "sum(max(lengths[row]) for row in rows)",
            "positions with padding, more than the budget of 200",
        ),
    ),
    "11_schedule": (
        Mistake("min(", "max(", "it rises linearly"),
        Mistake("d_model**-0.5", "d_model**0.5", "512 times as large"),
        Mistake("min(step**-0.5, step * warmup_steps**-1.5)", "step**-0.5", "not 2 times"),
    ),
    "12_label_smoothing": (
        Mistake("log_p[real][:, ~is_pad]", "log_p[real]", "leave out the column of padding"),
        Mistake("real = target_ids != pad_id", "real = target_ids >= 0", "target is padding count"),
        Mistake(
            "return -right * math.log(right) - (n_entries - 1) * wrong * math.log(wrong)",
            "return -math.log(right)",
            "no network reaches 0.0916",
        ),
    ),
    "13_averaging": (
        Mistake(".mean(dim=0)", ".sum(dim=0)", "count 1, 1, 1, 1, not 0.25 each"),
        Mistake(
            "return {name: torch.stack([one[name] for one in checkpoints]).mean(dim=0) "
            "for name in names}",
            "mean = dict(names)\n"
            "    for one in checkpoints[1:]:\n"
            "        mean = {name: (mean[name] + one[name]) / 2 for name in names}\n"
            "    return mean",
            "count 0.125, 0.125, 0.25, 0.5, not 0.25 each",
        ),
        Mistake(
            "return {",
            "for one in checkpoints[1:]:\n"
            "        for name in names:\n"
            "            names[name] += one[name]\n"
            "    return {name: total / len(checkpoints) for name, total in names.items()}\n"
            "    return {",
            "checkpoint 0 was changed",
        ),
    ),
    "14_alignment": (
        Mistake(
            "return summed / queries.sum(dim=0)[:, None]",
            "return summed / queries.sum(dim=0)[:, None] / keys.sum(dim=0)",
            "attention to a word is the sum over its subwords",
        ),
        Mistake(
            "return summed / queries.sum(dim=0)[:, None]",
            "return summed",
            "with three subwords sum to 3.00, not 1",
        ),
        Mistake("argmax(dim=-1)", "argmax(dim=0)", "align returns 3 numbers for 1 target word"),
    ),
    "15_bleu": (
        Mistake(
            "(ours & theirs).total()",
            "sum(count for one, count in ours.items() if one in theirs)",
            "counts at most as often as it occurs in the reference",
        ),
        Mistake("min(1.0, math.exp(1 - r / c))", "1.0", "is the brevity penalty right?"),
        Mistake(
            "    found, total = [0] * 4, [0] * 4\n",
            "    if len(translations) > 1:\n"
            "        pairs = zip(translations, references)\n"
            "        return sum(bleu([ours], [theirs]) for ours, theirs in pairs) / 2\n"
            "    found, total = [0] * 4, [0] * 4\n",
            "do not average sentences",
        ),
    ),
    "16_brackets": (
        Mistake("    close(1)\n", "", "a bracket is closed by one with another label"),
        Mistake('if result[-1] == f"({label}":', "if False:", "a bracket holds no word"),
        Mistake('*["XX"] * (n_words - words), ', "", "it has fewer words than the sentence"),
    ),
    "17_greedy": (
        Mistake("            break\n", "            pass\n", "does it stop at the end symbol?"),
        Mistake(
            "        if token == eos_id:\n            break\n        ids.append(token)\n",
            "        ids.append(token)\n        if token == eos_id:\n            break\n",
            "ends with the end symbol",
        ),
        Mistake("next_log_p(ids)", "next_log_p(ids[-1:])", "with known outputs and at most"),
    ),
    "18_cache": (
        Mistake(
            "return scores.softmax(dim=-1) @ self.values",
            "return scores[:, :-1].softmax(dim=-1) @ self.values[:-1]",
            "the first token attends to itself alone",
        ),
        Mistake(
            "self.values = torch.cat([self.values, x @ self.w_v])",
            "self.values = (x @ self.w_v).expand(len(self.keys), -1)",
            "the output of step 1 (from 0) differs",
        ),
        Mistake(
            "        self.keys = torch.cat([self.keys, x @ self.w_k])\n"
            "        self.values = torch.cat([self.values, x @ self.w_v])\n",
            "        self.inputs = torch.cat([getattr(self, 'inputs', x[:0]), x])\n"
            "        self.keys = self.inputs @ self.w_k\n"
            "        self.values = self.inputs @ self.w_v\n",
            "cache keys and values, so that only the new token is projected",
        ),
    ),
    "19_beam_step": (
        Mistake(
            "live[:, None] + next_log_p", "next_log_p", "but its parent's and its token's sum to"
        ),
        Mistake(
            "[one for one in best if one.token != eos_id][:w]", "best[:w]", "a live hypothesis ends"
        ),
        Mistake(
            "    total, index = (live[:, None] + next_log_p).flatten().topk(2 * w)\n",
            "    total, column = (live[:, None] + next_log_p).topk(2, dim=1)\n"
            "    index = (column + v * column.new_tensor(range(w))[:, None]).flatten()\n"
            "    total, order = total.flatten().sort(descending=True)\n"
            "    index = index[order]\n",
            "compare all W · V candidates with each other",
        ),
    ),
    "20_length_penalty": (
        Mistake(
            "((5 + length) / 6) ** alpha", "length**alpha", "the penalty of 2 tokens with α = 0.6"
        ),
        Mistake("ALPHA = 0.6", "ALPHA = 0.0", "the search finds 'n.', not 'nein.'"),
        Mistake("ALPHA = 0.6", "ALPHA = 2.0", "the search finds 'neinneinnein.', not 'nein.'"),
    ),
}
