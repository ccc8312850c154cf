// Show only the claims with one verdict.
for (const button of document.querySelectorAll(".verdicts button")) {
  button.addEventListener("click", () => {
    const verdict = button.dataset.verdict;
    for (const other of document.querySelectorAll(".verdicts button")) {
      other.setAttribute("aria-pressed", String(other === button));
    }
    for (const claim of document.querySelectorAll(".claim")) {
      claim.hidden = Boolean(verdict) && !claim.classList.contains(`claim-${verdict}`);
    }
  });
}
