// Package target describes what one bridge is for: a [Spec] has what the user's flags say, and
// a [Target] is what ssh_config makes of it. Processes that mean the same bridge come to the
// same [Target.ID].
package target
