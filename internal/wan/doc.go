// Package wan makes two network namespaces with a real delay between them, for
// measuring what round trips cost: TCP's handshake, Nagle's algorithm, delayed
// acknowledgements and windows are the kernel's own. Linux, as root, with ip(8).
// Nothing outside the two namespaces can be reached from them.
package wan
