/* On phones the navigation is a strip: where one is stands in sight. */
document.querySelector('.navigation [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
