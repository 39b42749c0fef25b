import type { AddressOf } from './client-address.ts';
import type { PersonPage } from './pages/asked.ts';
import { loginPages } from './pages/login.tsx';
import { providerPages } from './pages/provider.tsx';
import { secondFactorPages } from './pages/second-factor.tsx';
import { settingsPages } from './pages/settings.tsx';
import { signUpPages } from './pages/sign-up.tsx';
import type { People } from './people.ts';

export type PersonPagesDeps = Readonly<{
  people: People;
  addressOf: AddressOf;
  /** Hears why an identity provider could not be used. */
  noteUnavailable(reason: string): void;
}>;

/** Every page of the login and the settings. */
export function personPages({ people, addressOf, noteUnavailable }: PersonPagesDeps): readonly PersonPage[] {
  return [
    ...loginPages(people, addressOf),
    ...providerPages(people, addressOf, noteUnavailable),
    ...signUpPages(people, addressOf),
    ...settingsPages(people),
    ...secondFactorPages(people),
  ];
}
