import type { Action, Asked } from './context.ts';
import { themeCookie } from './layout.tsx';
import { seeOther } from './redirect.ts';

/** `POST /theme`: keeps the chosen colours in a cookie and comes back to the page. */
export function createThemeAction(origin: string): Action<Asked> {
  return function chooseTheme({ form }) {
    const response = seeOther(form.get('next') ?? '/');
    response.headers.set('set-cookie', themeCookie(form.get('theme'), origin.startsWith('https:')));
    return response;
  };
}
