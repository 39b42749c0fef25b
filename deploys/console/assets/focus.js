/* What went wrong with a form is read first. */
document.querySelector('.error-summary')?.focus();
