import type { Action, Asked } from './asked.ts';
import { themeCookie } from './page/theme.ts';
import { seeOther } from './see-other.ts';

/** `POST /theme`: keeps the chosen colours in a cookie and comes back to the page. */
export function createThemeAction(origin: string): Action<Asked> {
  return function chooseTheme({ form }) {
    const response = seeOther(form.get('next') ?? '/');
    response.headers.set('set-cookie', themeCookie(form.get('theme'), origin.startsWith('https:')));
    return response;
  };
}
