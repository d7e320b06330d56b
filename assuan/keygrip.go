package assuan

// KeygripDigits is the length of a keygrip, gpg-agent's name for a key, in its
// commands and files: a SHA-1 in hexadecimal digits (libgcrypt,
// gcry_pk_get_keygrip).
const KeygripDigits = 40
