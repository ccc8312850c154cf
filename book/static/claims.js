// Show only the claims with one verdict. A link to a claim that is hidden shows all of them again.
{
  const bar = document.querySelector(".verdicts");
  const buttons = [...bar.querySelectorAll("button")];
  const status = bar.querySelector("[role=status]");
  const choose = (verdict) => {
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.verdict === verdict));
    const claims = [...document.querySelectorAll(".claim")];
    for (const claim of claims) claim.hidden = verdict !== "" && !claim.classList.contains(`claim-${verdict}`);
    const shown = claims.filter((claim) => !claim.hidden).length;
    status.textContent = status.dataset.words.replace("{n}", shown);
  };
  for (const button of buttons) button.addEventListener("click", () => choose(button.dataset.verdict));
  addEventListener("hashchange", () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target?.classList.contains("claim") && target.hidden) {
      choose("");
      target.scrollIntoView();
    }
  });
  bar.hidden = false;
}
