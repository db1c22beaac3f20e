//! Who calls whom, as a flow chart in Mermaid's language.

use super::graph::Graph;

/// The flow chart: an arrow for each dependency, with its attempts and its deadline.
pub(super) fn mermaid(graph: &Graph) -> String {
    let nodes = graph.nodes.iter().enumerate();
    // Names may hold what Mermaid's identifiers may not: each has a number.
    let nodes = nodes.map(|(number, node)| format!("  n{number}[\"{}\"]\n", escaped(&node.name)));
    let arrows = graph.arrows.iter().map(|arrow| {
        let (attempts, deadline) = (escaped(&arrow.attempts), &arrow.deadline);
        format!(
            "  n{} -->|\"{attempts}, {deadline}\"| n{}\n",
            arrow.from, arrow.to
        )
    });
    format!("flowchart LR\n{}", nodes.chain(arrows).collect::<String>())
}

fn escaped(name: &str) -> String {
    name.replace('&', "&amp;")
        .replace('"', "&quot;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
