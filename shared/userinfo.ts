/** The decoded user and password of an address, empty where it has none; `undefined` when a `%` in them begins no escape. */
export function userinfoOf({ username, password }: Pick<URL, 'username' | 'password'>) {
  try {
    return { username: decodeURIComponent(username), password: decodeURIComponent(password) };
  } catch {
    return undefined;
  }
}
