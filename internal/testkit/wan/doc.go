// Package wan makes two network namespaces with a real delay between them, to
// measure what round trips cost: TCP's handshake, Nagle's algorithm, delayed
// acknowledgements and windows are the kernel's own. It needs Linux, root and ip(8).
// Nothing outside the two namespaces can be reached from them.
package wan
