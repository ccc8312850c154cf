"""The figure of the lesson on longer contexts."""

from companion.figures import _figure


def scaling_pairs(lang):
    """Return the 64 pairs of a head over r, the turns each makes within the trained length, and their new speeds.

    Two menus choose the model (base and trained length) and the rule; sliders set α, β and s, and which pair the
    dial below shows: what training has seen of it, and what a text s times as long would use, with its own
    speed and with the new one. A line below a dot marks a pair that enters angles never seen.
    """
    words = {
        "zh": {
            "alt": "横轴是训练长度内的圈数 r，纵轴是新旧转速之比，64 个点各是一个旋转对；下面的钟面是选中的一对",
            "model": "模型",
            "rule": "规则",
            "rules": ["内插（PI）", "NTK 感知", "分段 NTK（论文）", "YaRN（代码）"],
            "alpha": "α：圈数不到 α 的完全内插",
            "beta": "β：圈数超过 β 的保持原样",
            "factor": "s：扩展倍数",
            "pair": "钟面显示第几对，i",
            "marks": ["保持", "混合", "完全内插", "竖线：走进没见过的角度"],
            "title": "第 {i} 对：θ′ / θ = {ratio}",
            "lines": ["训练见过：{r} 圈", "到 sL，转速不变：{old} 圈", "到 sL，用 θ′：{new} 圈"],
            "status": "保持 {kept} 对，混合 {blended} 对，完全内插 {full} 对；走进没见过的角度的有 {out} 对。"
            "第 {i} 对{verdict}。",
            "verdicts": [
                "训练时已经转满一圈，没有没见过的角度",
                "留在训练见过的角度之内",
                "走出了训练见过的角度",
            ],
        },
        "en": {
            "alt": "64 dots, one per pair: across, the turns r within the trained length; up, the new speed relative to "
            "the old; the dial below shows the chosen pair",
            "model": "model",
            "rule": "rule",
            "rules": ["interpolation (PI)", "NTK-aware", "NTK-by-parts (paper)", "YaRN (code)"],
            "alpha": "α: below α turns, fully interpolated",
            "beta": "β: above β turns, kept",
            "factor": "s: factor of extension",
            "pair": "pair on the dial, i",
            "marks": ["kept", "blended", "fully interpolated", "lines: enter unseen angles"],
            "title": "Pair {i}: θ′ / θ = {ratio}",
            "lines": [
                "seen in training: {r} turns",
                "to sL, speed unchanged: {old}",
                "to sL, with θ′: {new} turns",
            ],
            "status": "Pairs kept: {kept}; blended: {blended}; fully interpolated: {full}; entering angles never "
            "seen: {out}. Pair {i} {verdict}.",
            "verdicts": [
                "went all the way round in training, so no angle is new to it",
                "stays within the angles seen in training",
                "leaves the angles seen in training",
            ],
        },
    }
    models = [
        {"name": "Llama 2 (b = 10⁴, L = 4096)", "base": 1e4, "length": 4096},
        {"name": "Llama 3.1 (b = 5·10⁵, L = 8192)", "base": 5e5, "length": 8192},
    ]
    return _figure("scaling_pairs", lang, words, models=models, half_dim=64)
