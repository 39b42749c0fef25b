import type { Settings } from '../../../webhooks/settings.ts';

/** The settings of a webhook as its form sends them. `isAll` and the chosen ones stay as they were when it comes back. */
export type GivenSettings = Readonly<{
  url: string;
  description: string;
  isAll: boolean;
  programs: readonly string[];
}>;

/** Nothing filled in; with a program, that one chosen. */
export function emptySettings(program?: string): GivenSettings {
  const programs = program === undefined ? [] : [program];
  return { url: '', description: '', isAll: program === undefined, programs };
}

/** What a form says. Blanks around the URL come from copying. */
export function givenFrom(form: URLSearchParams): GivenSettings {
  return {
    url: (form.get('url') ?? '').trim(),
    description: (form.get('description') ?? '').trim(),
    isAll: form.get('programs') !== 'chosen',
    programs: form.getAll('program'),
  };
}

/** What the service is asked for. */
export function settingsOf({ url, description, isAll, programs }: GivenSettings): Settings {
  return { url, description, programs: isAll ? null : programs };
}
