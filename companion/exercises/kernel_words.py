"""What the checker of kernels says, in Chinese and in English."""

_SAID = {
    "no_kernel": (
        "这里要的是一个内核：函数上面要有 @triton.jit",
        "a kernel is expected here: put @triton.jit above the function",
    ),
    "raised": ("内核抛出了 {error}", "the kernel raised {error}"),
    "reads_far": (
        "程序 {program} 读到了远离一切张量的地方：检查指针的算式",
        "program {program} reads far away from every tensor: check how the pointers are computed",
    ),
    "writes_far": (
        "程序 {program} 写到了远离一切张量的地方：检查指针的算式",
        "program {program} writes far away from every tensor: check how the pointers are computed",
    ),
    "reads_past": (
        "程序 {program} 读到了 {name} 末尾之后的 {count} 个元素：检查 tl.load 的掩码，或者步长",
        "program {program} read {count} element{s} past the end of {name}: check the mask of tl.load, or the strides",
    ),
    "writes_past": (
        "程序 {program} 写到了 {name} 末尾之后的 {count} 个元素：检查 tl.store 的掩码，或者步长",
        "program {program} wrote {count} element{s} past the end of {name}: check the mask of tl.store, or the strides",
    ),
    "reads_before": (
        "程序 {program} 读到了 {name} 开头之前的 {count} 个元素：有下标是负数",
        "program {program} read {count} element{s} before the start of {name}: some index is negative",
    ),
    "writes_before": (
        "程序 {program} 写到了 {name} 开头之前的 {count} 个元素：有下标是负数",
        "program {program} wrote {count} element{s} before the start of {name}: some index is negative",
    ),
    "reads_between": (
        "程序 {program} 读了 {name} 的行与行之间不属于它的 {count} 个元素：往下一行要跳为 {name} 传进来的步长，不是行的宽度，也不是别的张量的步长",
        "program {program} read {count} element{s} between the rows of {name}: the next row is one stride of {name} further, not one width, and not a stride of another tensor",
    ),
    "writes_between": (
        "程序 {program} 写了 {name} 的行与行之间不属于它的 {count} 个元素：往下一行要跳为 {name} 传进来的步长，不是行的宽度，也不是别的张量的步长",
        "program {program} wrote {count} element{s} between the rows of {name}: the next row is one stride of {name} further, not one width, and not a stride of another tensor",
    ),
    "nothing_written": ("内核什么也没有写到 y 里", "the kernel wrote nothing to y"),
    "unwritten": (
        "{places} 从来没有写过：检查偏移量和 tl.store 的掩码",
        "{places} was never written: check the offsets and the mask of tl.store",
    ),
    "clash_writes": (
        "程序 {first} 和程序 {second} 都写了 {place}：一个元素只能归一个程序写",
        "programs {first} and {second} both wrote {place}: an element must belong to one program only",
    ),
    "clash_reads": (
        "程序 {first} 和程序 {second} 一个写 {place}、一个读它：谁先谁后没有保证",
        "of the programs {first} and {second} one writes {place} and the other reads it: nothing says which comes first",
    ),
    "order": (
        "打乱程序的次序，结果就不对了：在 GPU 上它们同时运行，没有先后",
        "in another order of the programs the result is wrong: on a GPU they run at once, in no order",
    ),
    "half": (
        "{places} 的误差比舍入一次大：像是在 float16 里做了算术，读进来之后先 .to(tl.float32)",
        "the error of {places} is larger than one rounding: this looks like arithmetic in float16; use .to(tl.float32) right after loading",
    ),
    "nan": (
        "{places} 是 nan：可能是溢出，可能是 −∞ − (−∞) 或 0/0，也可能是读到了张量之外",
        "{places} is nan: an overflow, −∞ − (−∞) or 0/0, or a load outside a tensor",
    ),
    "wrong": (
        "{case} 时 {places} 不对：{first} 应该是 {want}，得到的却是 {got}",
        "with {case}, {places} is wrong: {first} should be {want}, got {got}",
    ),
    "backward_wrong": (
        "正向对了，{case} 时反向的 {places} 不对：{first} 应该是 {want}，得到的却是 {got}",
        "forward is right; backward, with {case}, {places} is wrong: {first} should be {want}, got {got}",
    ),
}


def said(key, **values):
    """Return the sentence of this key as a pair (Chinese, English), with its blanks filled in."""
    chinese, english = _SAID[key]
    values["s"] = "" if values.get("count") == 1 else "s"
    return chinese.format(**values), english.format(**values)
