"""What is easily done wrong with the RoPE of a model, as pairs of a Chinese and an English sentence."""

import numpy as np

from companion.frequency_scaling import _ramp_ends, yarn, yarn_attention_factor


def traps(inspection):
    """Return the list of pairs (zh, en) that apply to this `Inspection`.

    >>> from companion.inspect_report import inspect_rope
    >>> [en for zh, en in traps(inspect_rope({"head_dim": 4}))][0][:29]
    'rope_theta is not in the file'

    They stem from reports of real faults in public repositories.
    """
    return [
        *_assumed(inspection.rope),
        *_beyond(inspection),
        *_by_method(inspection),
        *_attention(inspection),
        *_dimensions(inspection.rope),
    ]


def _assumed(rope):
    if rope["base_is_assumed"]:
        yield (
            "文件里没有 rope_theta，这里按 10000 计算；请确认该模型确实使用 RoPE。",
            "rope_theta is not in the file, 10000 is assumed; make sure that the model uses RoPE at all.",
        )
    if (
        rope["train_len_is_assumed"]
        and rope["train_len"]
        and rope["rope_type"] in ("linear", "dynamic", "yarn")
    ):
        yield (
            f"文件里没有 original_max_position_embeddings，这里把 max_position_embeddings = {rope['train_len']:,} "
            "当作训练长度；若它已是扩展后的长度，圈数和分段都会不对。",
            "original_max_position_embeddings is not in the file, so max_position_embeddings = "
            f"{rope['train_len']:,} is taken for the trained length; if it is the extended one, turns and ramp are off.",
        )


def _beyond(inspection):
    rope, seq_len, train_len = inspection.rope, inspection.seq_len, inspection.rope["train_len"]
    if not seq_len or not train_len or rope["rope_type"] == "dynamic":
        return
    reach = max(train_len * rope.get("factor", 1), rope["max_position_embeddings"] or 0)
    if rope["rope_type"] in ("default", "proportional") and seq_len > train_len:
        slow = int((inspection.turns < 1).sum())
        yield (
            f"{seq_len:,} 超过训练长度 {train_len:,}，而频率没有缩放：有 {slow} 对在训练中没有转满一圈，"
            "会转到从未见过的角度。",
            f"{seq_len:,} is beyond the trained length {train_len:,} and nothing is scaled: {slow} pairs never "
            "completed a turn in training and reach angles not seen there.",
        )
    elif seq_len > reach:
        yield (
            f"{seq_len:,} 超过该配置能到的长度 {reach:,.0f}：慢的对会转到训练中没见过的角度。",
            f"{seq_len:,} is beyond {reach:,.0f}, as far as this configuration reaches: slow pairs get to angles "
            "not seen in training.",
        )


def _by_method(inspection):
    rope, train_len = inspection.rope, inspection.rope["train_len"]
    if rope["rope_type"] in ("linear", "yarn") and rope["factor"] > 1:
        yield (
            "缩放是静态的：短文本也按同样的倍数变慢。没有为此微调过的模型，短文本会略有损失。",
            "The scaling is static: short texts are slowed down by the same factor, and a model that was not tuned "
            "for it loses a little there.",
        )
    if rope["rope_type"] in ("linear", "yarn", "llama3") and not rope["train_len_is_assumed"]:
        yield from _two_lengths(rope, train_len * rope["factor"], rope["max_position_embeddings"])
    if rope["rope_type"] == "dynamic":
        length = max(inspection.seq_len or 0, train_len)
        yield (
            f"频率随当前长度变化，上表对应 {length:,} 个词元；在别的长度下缓存的已旋转的键要重新旋转。",
            f"The speeds depend on the length at hand, here {length:,} tokens; rotated keys that were cached at "
            "another length must be turned anew.",
        )
    if rope["rope_type"] == "longrope":
        which = "long_factor" if (inspection.seq_len or 0) > train_len else "short_factor"
        yield (
            f"不超过 {train_len:,} 个词元用 short_factor，从第 {train_len + 1:,} 个起整个序列改用 long_factor"
            f"（上表为 {which}）；越过时缓存的键要重新计算。",
            f"Up to {train_len:,} tokens short_factor holds, from {train_len + 1:,} on long_factor for the whole "
            f"sequence (here: {which}); cached keys must be computed anew when that happens.",
        )
    if rope["rope_type"] == "yarn" and rope.get("truncate") is False:
        yield _untruncated(inspection)


def _two_lengths(rope, reach, longest):
    if longest is not None and reach > longest and rope["rope_type"] != "llama3":
        yield (
            f"扩展倍数 × 训练长度 = {reach:,.0f}，大于 max_position_embeddings = {longest:,}：推理框架可能按后者截断。",
            f"factor × trained length = {reach:,.0f} is more than max_position_embeddings = {longest:,}: software that "
            "serves the model may stop there.",
        )
    if longest is not None and reach < longest:
        yield (
            f"扩展倍数 × 训练长度 = {reach:,.0f}，小于 max_position_embeddings = {longest:,}：再往后慢的对会超出最初训练"
            "见过的角度，只有在长文本上训练过才能弥补。",
            f"factor × trained length = {reach:,.0f} is less than max_position_embeddings = {longest:,}: beyond it slow "
            "pairs leave the angles of the first training, which only training on long texts makes good.",
        )


def _untruncated(inspection):
    rope = inspection.rope
    options = {"beta_fast": rope.get("beta_fast", 32.0), "beta_slow": rope.get("beta_slow", 1.0)}
    low, high = _ramp_ends(
        rope["rotary_dim"], rope["rope_theta"], rope["train_len"], *options.values(), False
    )
    rounded = yarn(inspection.before, rope["factor"], rope["train_len"], base=rope["rope_theta"], **options)
    off = np.abs(rounded / inspection.result.inv_freq - 1)
    worst = int(off.argmax())
    return (
        f"truncate 为 false：过渡段的两端 {low:.2f} 和 {high:.2f} 不取整；取整的软件会让第 {worst} 对差 {off[worst]:.0%}。",
        f"truncate is false: the ramp ends at {low:.2f} and {high:.2f}, not rounded; software that rounds gets pair "
        f"{worst} wrong by {off[worst]:.0%}.",
    )


def _attention(inspection):
    rope, result = inspection.rope, inspection.result
    if rope["rope_type"] == "yarn" and "attention_factor" in rope:
        usual = yarn_attention_factor(
            rope["factor"], mscale=rope.get("mscale"), mscale_all_dim=rope.get("mscale_all_dim")
        )
        if not np.isclose(usual, result.attention_factor, rtol=1e-6):
            yield (
                f"文件里的 attention_factor 取代公式值 {usual:.7g}，而不是与它相乘。",
                f"attention_factor in the file replaces the formula's {usual:.7g}; it is not multiplied with it.",
            )
    if result.softmax_scale_factor != 1:
        yield (
            "mscale_all_dim 的温度在 softmax 里：1/√d 要再乘上面的数，对整个头（含不旋转的部分）都有效。",
            "The temperature of mscale_all_dim sits in the softmax: multiply 1/√d by the number above, for the whole "
            "head with the part that does not turn.",
        )


def _dimensions(rope):
    turned, head = rope["rotary_dim"], rope["head_dim"]
    if rope["latent"]:
        yield (
            f"多头潜在注意力（MLA）：每个头只有 {turned} 维（qk_rope_head_dim）带位置，其余维不旋转。",
            f"Multi-head latent attention: only {turned} dimensions of a head (qk_rope_head_dim) carry positions; "
            "the others do not turn.",
        )
    if turned < head:
        yield (
            f"部分旋转：{head} 维里只有前 {turned} 维旋转，指数的分母是 {turned} 而不是 {head}。",
            f"Partial rotary: only the first {turned} of {head} dimensions turn, and the exponents are over {turned}, "
            f"not {head}.",
        )
    if rope["rope_type"] == "proportional" and rope["partial_rotary_factor"] < 1:
        yield (
            f"比例 RoPE：指数的分母是整个头的 {head}，慢的对频率为 0；这不是部分旋转。",
            f"Proportional RoPE: the exponents are over the whole head, {head}, and the slow pairs have speed 0; this "
            "is not partial rotary.",
        )
    if rope["pairing"] == "adjacent":
        yield (
            "该模型把相邻的两维 (2i, 2i+1) 配对，而不是对半配对；用错时短文本看起来仍正常。",
            "This model pairs neighbouring dimensions (2i, 2i+1), not halves; with the other pairing short texts may "
            "still look right.",
        )
    if rope["mrope_section"] is not None:
        t, h, w = rope["mrope_section"]
        layout = "interleaved" if rope["mrope_interleaved"] else "contiguous"
        yield (
            f"M-RoPE：T、H、W 各 {t}、{h}、{w} 对，布局 {layout}；布局用错时纯文本正常，图像和视频出错。",
            f"M-RoPE: {t}, {h} and {w} pairs for T, H and W, layout {layout}; with the other layout text stays right "
            "while images and video go wrong.",
        )
