// Package proc runs other programs as ssh does, waits for processes that are not our
// children, knows our parent, and passes files between processes.
package proc
