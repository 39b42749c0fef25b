/* On phones the navigation is a strip: scroll the current page into view. */
document.querySelector('.navigation [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
