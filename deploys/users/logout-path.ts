/** Where a login is ended. */
export const LOGOUT_PATH = '/logout';
